// SPDX-License-Identifier: Apache-2.0

package rules

func measuringCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.enable_stats = true"},
			{manifest: "sgx.debug = true\nsgx.profile.enable = \"main\""},
			{manifest: "sgx.debug = true\nsgx.vtune_profile = true"},
		},
		near: []given{
			{manifest: "sgx.enable_stats = false"},
			{manifest: "sgx.print_stats = true"},
			{manifest: "sgx.profile.enable = \"none\"\nsgx.profile.mode = \"aex\""},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}
