// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func sharedCores() advise.Rule {
	return advise.Rule{
		ID: "shared-cores", Title: "the program is pinned to hyper-threads of the same cores", Section: sectionMachine,
		Needs:  [][]advise.Input{{advise.Running}},
		Signal: "CPUs that a running program may use, the cores that have them, and cores without any", Threshold: "more CPUs than cores, although other cores are left",
		Source: "proposed; " + guide + ", Exitless feature: sets of cores", Advice: "one CPU of each core",
		NotWhen: []string{"other programs have the other cores", "the other hyper-threads of these cores must not run other programs, which could observe the enclave"},
		Judge: func(f *advise.Facts) *advise.Advice {
			l := f.Live
			if l.CPUs <= l.Cores || l.Spare < l.CPUs-l.Cores {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, fmt.Sprintf("The %d CPUs of the program are hyper-threads of %d cores, and share their units and caches. %d other cores run none of its threads.", l.CPUs, l.Cores, l.Spare))
			a.Seen = []advise.Seen{seen("CPUs", float64(l.CPUs), "1", running), seen("cores", float64(l.Cores), "1", running), seen("other cores", float64(l.Spare), "1", running)}
			a.Do = []string{"pin the program to one CPU of each core (taskset -c; /sys/devices/system/cpu/cpu*/topology/thread_siblings_list), and compare (teescope compare)"}
			return a
		},
	}
}
