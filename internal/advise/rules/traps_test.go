// SPDX-License-Identifier: Apache-2.0

package rules

import "time"

func trapsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{stats: [5]uint64{1, 1, 1032, 1032, 0}, elapsed: busy},
			{stats: [5]uint64{1, 1, 1032, 1032, 0}, elapsed: busy},
		},
		near: []given{
			{stats: [5]uint64{1, 1, 1031, 1031, 0}, elapsed: busy},
			{stats: helloWorld, elapsed: 100 * time.Millisecond},
		},
		negative: []given{
			{stats: [5]uint64{250, 201, 1, 0, 0}, elapsed: busy},
		},
	}
}
