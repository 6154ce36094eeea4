// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func threadCreationCases() ruleCases {
	return ruleCases{
		positive: []given{
			{found: judged.ThreadChurn},
			{found: judged.ThreadChurn, calls: "clone 100, bind 100, socket 200"},
		},
		near: []given{
			{found: judged.ProcessChurn},
		},
		negative: []given{
			{found: "none"},
		},
	}
}
