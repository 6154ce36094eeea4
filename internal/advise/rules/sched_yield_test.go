// SPDX-License-Identifier: Apache-2.0

package rules

func schedYieldCases() ruleCases {
	return ruleCases{
		positive: []given{
			{calls: "sched_yield 20, read 80"},
			{manifest: "a=1", calls: "sched_yield 20, read 80"},
		},
		near: []given{
			{calls: "sched_yield 19, read 81"},
		},
		negative: []given{
			{calls: "read 1"},
		},
	}
}
