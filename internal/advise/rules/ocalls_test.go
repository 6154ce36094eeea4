// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func ocallsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{stats: atBound, elapsed: busy},
			{found: judged.OCALLBound},
			{found: judged.SmallIO},
			{manifest: "a=1", found: judged.Exitless},
			{stats: exitsPer10s(446_000), elapsed: busy, cpu: 2 * busy},
		},
		near: []given{
			{stats: belowBound, elapsed: busy},
			{stats: exitsPer10s(440_000), elapsed: busy, cpu: 2 * busy},
			{stats: helloWorld, elapsed: time.Second},
			{manifest: "sgx.insecure__rpc_thread_num = 8", found: judged.Exitless},
			{found: judged.Exitless},
		},
		negative: []given{
			{found: "none"},
		},
	}
}
