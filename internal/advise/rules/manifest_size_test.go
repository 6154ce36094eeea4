// SPDX-License-Identifier: Apache-2.0

package rules

import "strings"

func manifestSizeCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: bigManifest},
		},
		near: []given{
			{manifest: "#" + strings.Repeat(" ", 1<<20-1)},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}
