// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func sconeQueues() advise.Rule {
	return advise.Rule{
		ID: "scone-queues", Title: "SCONE has more queues or threads outside than there are CPUs", Section: sectionSCONE,
		Needs:  [][]advise.Input{{advise.Config, advise.CPUs}},
		Signal: "`SCONE_QUEUES`, and Q and the lines s of SCONE's configuration file, against online CPUs", Threshold: "more than CPUs",
		Source: "proposed; " + sconeSource + ": threads in the enclave and outside serve each queue; one thread in the enclave for each core, and one outside for each of them", Advice: "at most as many queues as CPUs",
		Judge: func(f *advise.Facts) *advise.Advice {
			s := scone(f)
			cpus, ok := f.Machine.CPUs()
			if s == nil || !ok || max(s.Queues, s.Outside) <= uint64(cpus) {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("Threads in the enclave and outside poll the queues of system calls, and there are %d CPUs. With more of them than CPUs, threads that poll take the CPUs from threads that work.", cpus))
			a.Seen = []advise.Seen{seen("CPUs", float64(cpus), "1", f.Machine.Source("cpus_online"))}
			if s.Queues > 0 {
				a.Seen = append(a.Seen, seen("SCONE_QUEUES", float64(s.Queues), "1", f.ConfigFile))
			}
			if s.Outside > 0 {
				a.Seen = append(a.Seen, seen("threads outside", float64(s.Outside), "1", f.ConfigFile))
			}
			a.Do = []string{fmt.Sprintf("set SCONE_QUEUES=%d, with one thread outside for each queue, or fewer if other programs need the CPUs", cpus), "measure it: teescope record --matrix"}
			return a
		},
	}
}
