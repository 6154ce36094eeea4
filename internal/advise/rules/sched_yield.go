// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// yieldShare is the least share of sched_yield. Proposed.
const yieldShare = 0.20

func schedYield() advise.Rule {
	return advise.Rule{
		ID: "sched-yield", Title: "threads yield the processor often", Section: sectionSyntax + "Mocking syscalls", Analyze: judged.NeedlessSyscalls,
		Needs:  [][]advise.Input{{advise.Strace}},
		Signal: "share of sched_yield among the host's system calls", Threshold: "20 %", Source: "proposed; " + sectionSyntax + "Mocking syscalls has this example",
		Advice: "a lock that waits; mock sched_yield", NotWhen: []string{"more threads run than there are CPUs: without sched_yield they spin until the timer stops them"},
		Judge: func(f *advise.Facts) *advise.Advice {
			share, top := f.Calls.Share("sched_yield")
			if share < yieldShare {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("%.0f %% of the system calls on the host are sched_yield, and each is an OCALL.", 100*share))
			a.Seen = []advise.Seen{seen("share of sched_yield", share, "ratio", at(f.CallsFile, top.Line))}
			a.Do = []string{"replace loops around sched_yield by a lock that waits", "to see what it costs, make it do nothing (Gramine 1.8 and later)"}
			a.Changes = set("sys.debug__mock_syscalls", `[{ name = "sched_yield", return = 0 }]`)
			a.Choice, a.Risk = true, "sys.debug__mock_syscalls is for experiments: the application may rely on the call"
			return a
		},
	}
}
