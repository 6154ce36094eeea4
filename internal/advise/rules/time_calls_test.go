// SPDX-License-Identifier: Apache-2.0

package rules

func timeCallsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{calls: "gettimeofday 5, read 95"},
			{calls: "gettimeofday 3, clock_gettime 3, read 94"},
		},
		near: []given{
			{calls: "gettimeofday 4, read 95"},
		},
		negative: []given{
			{calls: "read 1"},
		},
	}
}
