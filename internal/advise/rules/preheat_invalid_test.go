// SPDX-License-Identifier: Apache-2.0

package rules

func preheatInvalidCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.preheat_enclave = true\nsgx.edmm_enable = true"},
			{manifest: "sgx.preheat_enclave = true", machine: mib128},
		},
		near: []given{
			{manifest: "sgx.preheat_enclave = true", machine: gib8},
			{manifest: "sgx.preheat_enclave = true"},
			{manifest: "sgx.edmm_enable = true"},
			{manifest: "sgx.preheat_enclave = false\nsgx.edmm_enable = true"},
		},
		negative: []given{
			{manifest: "a=1", machine: gib8},
		},
	}
}
