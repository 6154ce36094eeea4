// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

// collapse is the least part of its best throughput that SGX loses with more threads. Proposed.
const collapse = 0.20

// fall returns the row with the best throughput in SGX and the first later one that loses much of it, where
// gramine-direct loses less than half as much.
func fall(all []read.Load) (most, after read.Load, found bool) {
	most = fastest(all)
	for _, l := range all {
		if l.Threads <= most.Threads || l.SGX <= 0 || l.Direct <= 0 || most.Direct <= 0 {
			continue
		}
		if lost := 1 - l.SGX/most.SGX; lost >= collapse && 1-l.Direct/most.Direct < growthPart*lost {
			return most, l, true
		}
	}
	return most, after, false
}

func sgxLimit() advise.Rule {
	return advise.Rule{
		ID: "sgx-limit", Title: "more threads are slower in the enclave only", Section: sectionThreads, Analyze: judged.ThreadsOverCapacity,
		Needs:  [][]advise.Input{{advise.Scaling}},
		Signal: "throughput beyond its maximum in SGX, against gramine-direct with the same threads", Threshold: "20 % lost, and less than half as much by gramine-direct",
		Source: "proposed; gramineproject/gramine issue 853: MariaDB loses half from 16 to 32 threads", Advice: "the number of threads with the best throughput",
		NotWhen: []string{onceMeasured, "the runs in SGX had fewer CPUs"},
		Judge: func(f *advise.Facts) *advise.Advice {
			best, after, found := fall(f.Scaling)
			if !found {
				return nil
			}
			gain := best.SGX/after.SGX - 1
			a := configured(analysis.Medium, analysis.Measured, fmt.Sprintf("From %g to %g threads SGX loses %.0f %% of its throughput, and gramine-direct %.0f %%. The library OS is the same, so the enclave causes the rest: each wait and wake of a thread leaves it, and each preemption interrupts it.", best.Threads, after.Threads, 100*(1-after.SGX/best.SGX), 100*(1-after.Direct/best.Direct)))
			a.Why += later(f.Scaling, best, after)
			a.Seen = []advise.Seen{
				throughput(f, "gramine-sgx", best, best.SGX), throughput(f, "gramine-sgx", after, after.SGX),
				throughput(f, "gramine-direct", best, best.Direct), throughput(f, "gramine-direct", after, after.Direct),
			}
			a.Do = []string{
				fmt.Sprintf("limit the application to %g threads that work at once: against %g that was %.0f %% more throughput", best.Threads, after.Threads, 100*gain),
				"run no more busy threads than CPUs, and pin them (taskset)",
			}
			return a
		},
	}
}

// later says how much SGX loses with the most threads that were measured, if these are more than the first that lose much.
func later(all []read.Load, best, after read.Load) string {
	for _, l := range slices.Backward(all) {
		if l.SGX <= 0 || l.Threads <= after.Threads || l.SGX >= after.SGX {
			continue
		}
		said := fmt.Sprintf(" With %g it loses %.0f %%", l.Threads, 100*(1-l.SGX/best.SGX))
		if l.Direct <= 0 {
			return said + ", and gramine-direct was not measured there."
		}
		return said + fmt.Sprintf(", and gramine-direct %.0f %%.", 100*max(0, 1-l.Direct/best.Direct))
	}
	return ""
}
