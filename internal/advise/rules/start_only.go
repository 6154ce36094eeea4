// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
)

func startOnly() advise.Rule {
	return advise.Rule{
		ID: "start-only", Title: "the SGX stats show no more than a start", Section: sectionStats,
		Needs:  [][]advise.Input{{advise.Stats}},
		Signal: "EEXITs of a process", Threshold: "at most 200", Source: guide + ": 192 EEXITs of hello world are its start",
		Advice: "measure a longer run",
		Judge: func(f *advise.Facts) *advise.Advice {
			t := f.Stats.Total
			if f.Stats.Processes == 0 || t.EEXITs > uint64(startExits*f.Stats.Processes) {
				return nil
			}
			source := at(f.StatsFile, f.Stats.Line)
			a := configured(analysis.Info, analysis.Likely, fmt.Sprintf("%d EEXITs are %d OCALLs: before main, Gramine and Glibc read the manifest and load libraries, which takes about %d. "+
				"The %d EENTERs are these and %d others: ECALLs and returns from signal handling. %d of the %d AEXs belong to synchronous signals, such as the CPUID instruction, which Gramine emulates; "+
				"the others are timer and device interrupts and page faults.",
				t.EEXITs, t.EEXITs, startExits, t.EENTERs, max(t.EENTERs, t.EEXITs)-t.EEXITs, min(t.SyncSignals, t.AEXs), t.AEXs))
			a.Seen = []advise.Seen{
				seen("EENTERs", float64(t.EENTERs), "1", source), seen("EEXITs", float64(t.EEXITs), "1", source), seen("AEXs", float64(t.AEXs), "1", source),
				seen("sync signals", float64(t.SyncSignals), "1", source), seen("async signals", float64(t.AsyncSignals), "1", source),
			}
			a.Do = []string{"measure a run in which the work takes much longer than the start"}
			return a
		},
	}
}
