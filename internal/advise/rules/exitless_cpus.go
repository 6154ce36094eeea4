// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func exitlessCPUs() advise.Rule {
	return advise.Rule{
		ID: "exitless-cpus", Title: "threads outside occupy every CPU", Section: sectionExitless, Analyze: judged.Exitless,
		Needs:  [][]advise.Input{{advise.Manifest, advise.CPUs}},
		Signal: "`sgx.insecure__rpc_thread_num` against online CPUs", Threshold: "at least as many threads as CPUs", Source: guide + ": each thread outside occupies a core",
		Advice: "fewer threads outside, or none",
		Judge: func(f *advise.Facts) *advise.Advice {
			n, v, known := rpc(f.Manifest)
			cpus, ok := f.Machine.CPUs()
			if !known || !ok || n == 0 || n < int64(cpus) {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("%d threads outside wait actively for calls, and the machine has %d CPUs: they take the CPUs from the threads in the enclave. An analysis of a run shows whether they do (rule exitless).", n, cpus))
			a.Seen = []advise.Seen{setting(f.Manifest, v, "0"), seen("CPUs", float64(cpus), "1", f.Machine.Source("cpus_online"))}
			a.Do = []string{"turn Exitless off and compare (teescope compare)"}
			a.Changes, a.Choice = set(keyRPC, "0"), true
			return a
		},
	}
}
