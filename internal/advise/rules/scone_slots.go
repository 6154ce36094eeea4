// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func sconeSlots() advise.Rule {
	return advise.Rule{
		ID: "scone-slots", Title: "SCONE has no slot for the system call of each thread", Section: sectionSCONE,
		Needs:  [][]advise.Input{{advise.Config, advise.Scaling}},
		Signal: "`SCONE_SLOTS` against the largest number of threads of --scaling", Threshold: "no more slots than threads",
		Source: sconeSource + ": larger than the maximum number of threads of the application (lthreads)", Advice: "more slots than threads",
		Judge: func(f *advise.Facts) *advise.Advice {
			s := scone(f)
			most := f.Scaling[len(f.Scaling)-1].Threads // they ascend
			if s == nil || s.Slots == 0 || float64(s.Slots) > most {
				return nil
			}
			a := configured(analysis.Info, analysis.Possible, "The queues of system calls must have more slots than the application has threads.")
			a.Seen = []advise.Seen{seen("SCONE_SLOTS", float64(s.Slots), "1", f.ConfigFile), seen("threads", most, "1", f.ScalingFile)}
			a.Do = []string{fmt.Sprintf("set SCONE_SLOTS to more than %.0f", most)}
			return a
		},
	}
}
