// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func aexRateCases() ruleCases {
	return ruleCases{
		positive: []given{
			{stats: [5]uint64{1, 1, 5000, 0, 0}, elapsed: busy, cpu: busy},
			{found: judged.AEXStorm},
		},
		near: []given{
			{stats: [5]uint64{1, 1, 4990, 0, 0}, elapsed: busy, cpu: busy},
			{stats: [5]uint64{1, 1, 5000, 100, 0}, elapsed: busy, cpu: busy}, // signals are another rule's
			{stats: [5]uint64{1, 1, 9900, 0, 0}, elapsed: busy, cpu: 2 * busy},
		},
		negative: []given{
			{found: "none"},
		},
	}
}
