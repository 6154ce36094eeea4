// SPDX-License-Identifier: Apache-2.0

package rules

func futexTimeCases() ruleCases {
	return ruleCases{
		positive: []given{
			{calls: "futex 30, read 70"},
		},
		near: []given{
			{calls: "futex 29, read 71"},
		},
		negative: []given{
			{calls: "read 1"},
		},
	}
}
