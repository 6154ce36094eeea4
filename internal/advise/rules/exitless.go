// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strconv"

	"github.com/teescope/teescope/internal/advise"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func exitless() advise.Rule {
	return advise.Rule{
		ID: judged.Exitless, Title: "threads outside could make the system calls", Section: sectionExitless, Analyze: judged.Exitless, After: "ocalls",
		Needs:     [][]advise.Input{{advise.Manifest, advise.Findings}, {advise.Manifest, advise.Stats, advise.CPUTime, advise.CPUs}},
		Signal:    "the signal of `ocalls` with `sgx.insecure__rpc_thread_num` 0, at most 2 busy cores, and as many others; a finding of `exitless`",
		Threshold: "the thresholds of `ocall-bound` and `exitless`", Source: guide + ": Redis 43,010 to 68,119 requests/s; only for single-threaded applications or for latency",
		Advice:  "Exitless, with as many threads outside as thread slots",
		NotWhen: []string{"the enclave is for production", "other programs need the CPUs", "the calls block for long"},
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			if !known || n > 0 {
				return nil
			}
			var a *advise.Advice
			if found := f.Finding(judged.Exitless); found != nil {
				a = fromFinding(f, found)
			} else if cpus, ok := f.Machine.CPUs(); ok && f.Has(advise.CPUTime) && f.Busy() <= judged.ExitlessFewBusy && float64(cpus) >= 2*max(f.Busy(), 1) {
				if a = manyExits(f); a != nil {
					a.Seen = append(a.Seen, seen("CPUs", float64(cpus), "1", f.Machine.Source("cpus_online")))
					a.Saving.Assumptions = append(a.Saving.Assumptions, "the CPU time is that of the threads in the enclave: each thread outside takes an idle CPU")
				}
			}
			if a == nil {
				return nil
			}
			a.Analyze, a.Insecure, a.Risk = judged.Exitless, true, exitlessRisk
			a.Seen = append(a.Seen, setting(f.Manifest, v, "0"))
			a.Do = []string{"only after the advice about the exits themselves: as many threads outside as thread slots", "pin enclave threads and threads outside to different CPUs (taskset, isolcpus)"}
			slots, ok := threads(f.Manifest)
			switch cpus, counted := f.Machine.CPUs(); {
			case !ok || slots <= 1:
			case counted && slots >= int64(cpus): // exitless-cpus would then advise to turn Exitless off
				a.Do = append(a.Do, fmt.Sprintf("first lower sgx.max_threads to what the application needs: %d threads outside would occupy all of %d CPUs", slots, cpus))
			case slots > mostRPC:
				a.Do = append(a.Do, fmt.Sprintf("first lower sgx.max_threads to what the application needs: Gramine starts at most %d threads outside", mostRPC))
			default:
				a.Changes = set(keyRPC, strconv.FormatInt(slots, 10))
			}
			return a
		},
	}
}
