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

const (
	// startExits is the number of OCALLs that a start takes. Documented: the guide's hello world makes 192, "you may
	// consider 200 OCALLs as the cost of initialization".
	startExits = 200
	// startSignals is the number of synchronous signals of a start. Documented: 32 CPUIDs of Glibc in the same example.
	startSignals = 32
	// timeShare is the least share of calls for the time. Proposed.
	timeShare = 0.05
)

// exits returns the OCALLs a second after the start, and their cost in cores.
func exits(f *advise.Facts) (perSecond, low, high float64) {
	start := min(f.Stats.Total.EEXITs, uint64(startExits*max(1, f.Stats.Processes)))
	perSecond = float64(f.Stats.Total.EEXITs-start) / f.Time().Seconds()
	low, high = cost.OCALL.CPU(perSecond, f.Machine.Clock())
	return perSecond, low, high
}

// bound reports whether exits take as much of the CPU time as the rule ocall-bound requires. Without the CPU time of the
// program, it is compared with one core.
func bound(f *advise.Facts) bool {
	_, low, high := exits(f)
	used := f.Busy()
	if used == 0 {
		used = 1
	}
	return (low+high)/2 >= judged.OCALLShare*used
}

// manyExits returns advice about the exits that the stats count, or nil if there are few.
func manyExits(f *advise.Facts) *advise.Advice {
	if !f.Has(advise.Elapsed) || f.Stats.Processes == 0 || !bound(f) {
		return nil
	}
	perSecond, low, high := exits(f)
	least, most := cost.Saved(cost.OCALL, cost.Exitless, perSecond, f.Machine.Clock())
	used := f.Busy()
	a := &advise.Advice{
		Confidence: analysis.Likely,
		Seen: []advise.Seen{
			seen("OCALLs (EEXITs after the start)", perSecond, "1/s", at(f.StatsFile, f.Stats.Line)),
			seen("all EEXITs", float64(f.Stats.Total.EEXITs), "1", at(f.StatsFile, f.Stats.Line)),
			seen("time that they took", f.Time().Seconds(), "seconds", f.StatsFile),
		},
		Why: fmt.Sprintf("Each OCALL leaves the enclave and enters it again. %s OCALLs/s take %s to %s cores.",
			analysis.Figure(perSecond), analysis.Figure(low), analysis.Figure(high)),
		Analyze: judged.OCALLBound,
	}
	if used > 0 {
		a.Seen = append(a.Seen, seen("CPU time of the program", used, "cores", f.StatsFile+", perf stat"))
		least, most = min(least, used), min(most, used)
	}
	a.Saving = estimate.Saves(least, most, cost.OCALL.Assumption(), cost.Exitless.Assumption(), f.Machine.Clock().Assumption(),
		fmt.Sprintf("%d exits of each process belong to its start", startExits),
		"the stats do not show what limits the throughput, so only CPU time is claimed")
	a.Severity = analysis.SeverityOf(nil, a.Saving, max(used, 1))
	return a
}

// exitsFound returns advice from a finding about exits, or nil. A finding of the rule exitless takes the place of one of
// ocall-bound. With threads outside it is about these threads and not about exits.
func exitsFound(f *advise.Facts) *advise.Advice {
	for _, name := range []string{judged.OCALLBound, judged.SmallIO} {
		if found := f.Finding(name); found != nil {
			a := fromFinding(f, found)
			a.Do = slices.Clone(found.Advice)
			return a
		}
	}
	found := f.Finding(judged.Exitless)
	if found == nil {
		return nil
	}
	if off := f.Manifest != nil && hasNoRPC(f.Manifest); !off && !slices.Contains(found.Explains, judged.OCALLBound) {
		return nil
	}
	a := fromFinding(f, found)
	a.Do = lessExits()
	return a
}

// exitsSeen returns the evidence of many exits, from a finding or else from the stats, or nil.
func exitsSeen(f *advise.Facts) []advise.Seen {
	if found := exitsFound(f); found != nil {
		return found.Seen
	}
	if many := manyExits(f); many != nil {
		return many.Seen
	}
	return nil
}

// lessExits is what to do about many exits.
func lessExits() []string {
	return []string{
		"make fewer calls: pipeline requests, batch reads and writes, use larger buffers",
		"find the callers: sgx.profile.enable = \"main\", sgx.profile.mode = \"ocall_inner\" and sgx.profile.with_stack = true, in a debug build with sgx.debug = true",
	}
}

// trapRate returns the synchronous signals a second after the start.
func trapRate(f *advise.Facts) float64 {
	signals := f.Stats.Total.SyncSignals
	return float64(signals-min(signals, uint64(startSignals*f.Stats.Processes))) / f.Time().Seconds()
}

// clocks are the host's system calls for the time. Gramine's OCALL makes gettimeofday (sgx_ocall_gettime in host_ocalls.c).
func clocks() []string { return []string{"gettimeofday", "clock_gettime", "time"} }
