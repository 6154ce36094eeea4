// SPDX-License-Identifier: Apache-2.0

package rules

func oldProcessorCases() ruleCases {
	return ruleCases{
		positive: []given{
			{machine: "sgx2 no", calls: "gettimeofday 5, read 95"},
			{machine: "sgx2 no", stats: [5]uint64{1, 1, 1032, 1032, 0}, elapsed: busy},
		},
		near: []given{
			{machine: "sgx2 no", calls: "gettimeofday 4, read 95"},
			{machine: "sgx2 yes", calls: "gettimeofday 50, read 50"},
			{machine: "sgx2 no", stats: [5]uint64{1, 1, 1031, 1031, 0}, elapsed: busy},
		},
		negative: []given{
			{machine: "sgx2 no", calls: "read 1"},
		},
	}
}
