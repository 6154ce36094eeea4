// SPDX-License-Identifier: Apache-2.0

package rules

func sharedCoresCases() ruleCases {
	return ruleCases{
		positive: []given{
			{live: on(4, 2, 2, 1, false)},
		},
		near: []given{
			{live: on(4, 2, 1, 1, false)},
			{live: on(8, 4, 0, 1, false)},
		},
		negative: []given{
			{live: on(4, 4, 4, 1, false)},
			{live: on(0, 0, 0, 0, false)},
		},
	}
}
