// SPDX-License-Identifier: Apache-2.0

package rules

func exitlessPinningCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: fourOutside, live: on(8, 4, 0, 1, false)},
		},
		near: []given{
			{manifest: fourOutside, live: on(8, 4, 0, 1, true)},
			{manifest: fourOutside, live: on(1, 1, 3, 1, false)},
			{manifest: fourOutside, live: direct()},
		},
		negative: []given{
			{manifest: "a=1", live: on(8, 4, 0, 1, false)},
		},
	}
}
