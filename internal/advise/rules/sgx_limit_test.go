// SPDX-License-Identifier: Apache-2.0

package rules

func sgxLimitCases() ruleCases {
	return ruleCases{
		positive: []given{
			{scaling: mariaDB},
			{scaling: "8 - 100 90\n16 - 91 71\n"},
		},
		near: []given{
			{scaling: "8 - 100 90\n16 - 95 73\n"},
			{scaling: "8 - 100 90\n16 - 88 72\n"},
			{scaling: "8 800 700 600\n16 1600 - 300\n"}, // gramine-direct is not known there
		},
		negative: []given{
			{scaling: "1 100 90 50\n2 200 180 100\n"},
		},
	}
}
