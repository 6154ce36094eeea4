// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/estimate"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func aexRate() advise.Rule {
	return advise.Rule{
		ID: "aex-rate", Title: "enclave threads are interrupted often", Section: sectionExitless, Analyze: judged.AEXStorm,
		Needs:     [][]advise.Input{{advise.Findings}, {advise.Stats, advise.CPUTime}},
		Signal:    "AEXs a second for each busy core, except those of synchronous signals; a finding of `aex-storm`",
		Threshold: "the threshold of `aex-storm`: twice the 250/s of the timer", Source: guide + ": 250 interrupts a second; twice is proposed",
		Advice:  "pin threads, keep interrupts away from their CPUs",
		NotWhen: []string{"the kernel's timer is faster than 250 Hz"},
		Judge: func(f *advise.Facts) *advise.Advice {
			do := []string{"pin the program to CPUs that serve no device interrupts (taskset; /proc/irq/*/smp_affinity)", "isolate these CPUs (isolcpus) and stop their timer while one thread runs (nohz_full)"}
			if found := f.Finding(judged.AEXStorm); found != nil {
				a := fromFinding(f, found)
				a.Do = slices.Clone(found.Advice)
				return a
			}
			if !f.Has(advise.CPUTime) || f.Stats.Processes == 0 {
				return nil
			}
			t := f.Stats.Total
			seconds, busy := f.Stats.Elapsed.Seconds(), max(1, f.Busy())
			rate := float64(t.AEXs-min(t.AEXs, t.SyncSignals)) / seconds
			if rate < judged.AEXOverTick*judged.TickPerCore*busy {
				return nil
			}
			more := rate - judged.TickPerCore*busy
			low, high := cost.AEX.CPU(more, f.Machine.Clock())
			a := &advise.Advice{
				Confidence: analysis.Possible, Do: do, Saving: estimate.Saves(min(low, busy), min(high, busy), cost.AEX.Assumption(), f.Machine.Clock().Assumption(), "the timer's interrupts remain"),
				Why:  fmt.Sprintf("%s asynchronous exits a second are %s for each busy core. The timer causes %d.", analysis.Figure(rate), analysis.Figure(rate/busy), judged.TickPerCore),
				Seen: []advise.Seen{seen("AEXs without sync signals", rate, "1/s", at(f.StatsFile, f.Stats.Line)), seen("CPU time of the program", f.Busy(), "cores", f.StatsFile+", perf stat")},
			}
			a.Severity = analysis.SeverityOf(nil, a.Saving, busy)
			return a
		},
	}
}
