// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func futexTime() advise.Rule {
	return advise.Rule{
		ID: "futex-time", Title: "threads wait for each other", Section: sectionThreads, Analyze: judged.LockContention,
		Needs:     [][]advise.Input{{advise.Futex}, {advise.Strace}},
		Signal:    "share of futex in the measured time of system calls, with many calls of futex; without that time, share of futex in the number of the host's system calls, which the advice says",
		Threshold: "the threshold of `lock-contention`: 30 %, and with the time 1,000 calls/s", Source: "proposed; gramineproject/gramine issues 853 and 910",
		Advice:  "fewer threads",
		NotWhen: []string{"threads hand work to each other through condition variables: those that wait for work are in futex too"},
		Judge: func(f *advise.Facts) *advise.Advice {
			a := futexCalls(f)
			if f.Locks != nil { // time decides
				a = futexSeconds(f.Locks)
			}
			if a != nil {
				a.Do = append(a.Do, "run with fewer threads and compare: MariaDB under Gramine is slower with 32 threads than with 16", "find the lock with teescope profile, and shard it or shorten its sections")
			}
			return a
		},
	}
}

// futexSeconds returns advice if much of the time of system calls is in futex. Few calls are those of threads that wait for work.
func futexSeconds(l *advise.Locks) *advise.Advice {
	share := l.Futex / l.All
	if share < judged.FutexShare || l.Calls < judged.FutexPerSecond {
		return nil
	}
	a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("%.0f %% of the time in system calls is in futex: %s threads on average. Under Gramine each wait and each wake leaves the enclave.", 100*share, analysis.Figure(l.Futex)))
	a.Seen = []advise.Seen{seen("share of futex in the time of system calls", share, "ratio", l.Source), seen("futex calls", l.Calls, "1/s", l.Source)}
	return a
}

// futexCalls returns advice if many of the calls that strace counted are futex, or nil.
func futexCalls(f *advise.Facts) *advise.Advice {
	if f.Calls == nil {
		return nil
	}
	share, top := f.Calls.Share("futex")
	if share < judged.FutexShare {
		return nil
	}
	a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("%.0f %% of the system calls on the host are futex. Under Gramine each wait and each wake leaves the enclave. The time in them was not measured: these are calls, which can be short.", 100*share))
	a.Do = []string{"measure the time first: run the agent with --syscalls.time, then --server with --workload"}
	a.Seen = []advise.Seen{seen("share of futex in the number of system calls", share, "ratio", at(f.CallsFile, top.Line)), seen("futex calls", float64(top.Calls), "1", at(f.CallsFile, top.Line))}
	return a
}
