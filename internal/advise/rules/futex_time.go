// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func futexShare() advise.Rule {
	return advise.Rule{
		ID: "futex-time", Title: "threads wait for each other", Section: sectionThreads, Analyze: judged.LockContention,
		Needs:  [][]advise.Input{{advise.Strace}},
		Signal: "share of futex among the host's system calls", Threshold: "that of `lock-contention`: 30 %", Source: "proposed; gramineproject/gramine issues 853 and 910",
		Advice: "fewer threads",
		Judge: func(f *advise.Facts) *advise.Advice {
			share, top := f.Calls.Share("futex")
			if share < judged.FutexShare {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("%.0f %% of the system calls on the host are futex. Under Gramine each wait and each wake leaves the enclave.", 100*share))
			a.Seen = []advise.Seen{seen("share of futex", share, "ratio", at(f.CallsFile, top.Line)), seen("futex calls", float64(top.Calls), "1", at(f.CallsFile, top.Line))}
			a.Do = []string{"run with fewer threads and compare: MariaDB under Gramine is slower with 32 threads than with 16", "find the lock with teescope profile, and shard it or shorten its sections"}
			return a
		},
	}
}
