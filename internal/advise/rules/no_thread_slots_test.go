// SPDX-License-Identifier: Apache-2.0

package rules

func noThreadSlotsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{log: "error: There are no available TCS pages left for a new thread!\n"},
			{manifest: "sgx.max_threads = 8", log: "error: There are no available TCS pages left for a new thread. Please try to increase sgx.max_threads in the manifest. The current value is 8\n"},
		},
		near: []given{
			{log: "error: There are available TCS pages left for a new thread!\n"},
		},
		negative: []given{
			{log: "error: something else\n"},
		},
	}
}
