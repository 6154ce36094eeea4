// SPDX-License-Identifier: Apache-2.0

package rules

func throughputSplitCases() ruleCases {
	return ruleCases{
		positive: []given{
			{scaling: mariaDB},
		},
		near: []given{
			{scaling: "1 100 - 50\n2 - 90 50\n"},
		},
		negative: []given{
			{scaling: "1 100 - -\n"},
		},
	}
}
