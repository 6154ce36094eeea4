// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func slowLoadCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "a=1", load: 5100 * time.Millisecond},
			{manifest: "a=1", load: 6 * time.Second, machine: "sgx2 yes, kernel 6.1.0"},
			{manifest: "a=1", found: judged.SlowStart},
		},
		near: []given{
			{manifest: "a=1", load: 5 * time.Second},
			{manifest: "sgx.edmm_enable = true", load: 9 * time.Second},
		},
		negative: []given{
			{manifest: "a=1", found: "none"},
		},
	}
}
