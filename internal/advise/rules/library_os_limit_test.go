// SPDX-License-Identifier: Apache-2.0

package rules

func libraryOsLimitCases() ruleCases {
	return ruleCases{
		positive: []given{
			{scaling: mariaDB},
			{scaling: "1 100 90 50\n2 200 134 90\n"},
			{scaling: "10 100 90 50\n11 110 91 50\n12 125 92 50\n"}, // in small steps
		},
		near: []given{
			{scaling: "1 100 90 50\n2 200 136 90\n"},
			{scaling: "1 100 90 50\n2 100 80 90\n"}, // native does not grow either
			{scaling: "1 100 90 50\n2 200 - 90\n"},
			{scaling: "32 100 90 50\n33 103 90 90\n"}, // 3 % may be noise
		},
		negative: []given{
			{scaling: "1 100 90 50\n2 200 180 100\n"},
		},
	}
}
