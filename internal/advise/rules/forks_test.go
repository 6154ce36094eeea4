// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func forksCases() ruleCases {
	return ruleCases{
		positive: []given{
			{found: judged.ProcessChurn},
			{manifest: "a=1", found: judged.ProcessChurn},
		},
		near: []given{
			{found: judged.ThreadChurn},
		},
		negative: []given{
			{found: "none"},
		},
	}
}
