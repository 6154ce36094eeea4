// SPDX-License-Identifier: Apache-2.0

package rules

func configThreadsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{config: "NumTCS=4\nNumHeapPages=9\n", scaling: "1 2 - 1\n5 9 - 5\n"},
		},
		near: []given{
			{config: "NumTCS=4\n", scaling: "1 2 - 1\n4 9 - 5\n"},
			{config: "NumTCS=4\n", scaling: "4 2 - 1\n8 9 9 -\n"}, // not measured in SGX
		},
		negative: []given{
			{config: `{"resource_limits": {"max_num_of_threads": 32}}`, scaling: "64 9 - 5\n"},
			{config: `{"heapSize": 512}`, scaling: "64 9 - 5\n"},
			{config: "SCONE_SLOTS=2\n", scaling: "64 9 - 5\n"},
		},
	}
}
