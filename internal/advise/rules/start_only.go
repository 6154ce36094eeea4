// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func startOnly() advise.Rule {
	return advise.Rule{
		ID: "start-only", Title: "the SGX stats cover only the start", Section: sectionStats,
		Needs:  [][]advise.Input{{advise.Stats}},
		Signal: "EEXITs of a process", Threshold: "at most 200", Source: guide + ": 192 EEXITs of hello world are its start",
		Advice: "measure a longer run",
		Judge: func(f *advise.Facts) *advise.Advice {
			t := f.Stats.Total
			if f.Stats.Processes == 0 || t.EEXITs > uint64(startExits*f.Stats.Processes) {
				return nil
			}
			source := at(f.StatsFile, f.Stats.Line)
			a := configured(analysis.Info, analysis.Likely, ofStart(f))
			a.Seen = []advise.Seen{
				seen("EENTERs", float64(t.EENTERs), "1", source), seen("EEXITs", float64(t.EEXITs), "1", source), seen("AEXs", float64(t.AEXs), "1", source),
				seen("sync signals", float64(t.SyncSignals), "1", source), seen("async signals", float64(t.AsyncSignals), "1", source),
			}
			a.Do = []string{"measure a run in which the work takes much longer than the start"}
			return a
		},
	}
}

// ofStart explains the counts of a start as the guide explains those of hello world.
func ofStart(f *advise.Facts) string {
	t := f.Stats.Total
	why := fmt.Sprintf("%d EEXITs are %d OCALLs: before main, Gramine and Glibc read the manifest and load libraries, which takes about %d. "+
		"Of the %d EENTERs, %d return from OCALLs. The other %d are ECALLs, one for the process and one for each thread, and deliveries of signals. ",
		t.EEXITs, t.EEXITs, startExits, t.EENTERs, min(t.EENTERs, t.EEXITs), t.EENTERs-min(t.EENTERs, t.EEXITs))
	others := t.AEXs - min(t.AEXs, t.SyncSignals)
	why += fmt.Sprintf("%d of the %d AEXs belong to synchronous signals, such as the CPUID instruction, which Gramine emulates. ", t.AEXs-others, t.AEXs)
	// A CPU that sleeps has no timer interrupt. Without the CPU time, the program is taken to be busy all the time.
	busy := f.Time().Seconds()
	if f.Busy() > 0 {
		busy = f.Stats.CPU.Seconds()
	}
	if ticks := min(uint64(busy*judged.TickPerCore), others); ticks > 0 {
		return why + fmt.Sprintf("About %d of the others are the timer, %d a second in %s s. The rest is page faults in the enclave and interrupts of devices.", ticks, judged.TickPerCore, analysis.Figure(busy))
	}
	return why + fmt.Sprintf("The other %d are the timer, %d a second of CPU time, page faults in the enclave and interrupts of devices.", others, judged.TickPerCore)
}
