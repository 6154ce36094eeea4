// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// LLCMisses names the rule of this file.
const LLCMisses = "llc-misses"

const (
	// missesOverBase is the least ratio of misses to the baseline. Proposed: in TEEMon, frameworks have 5 to 60 times
	// the misses of native Redis (Middleware 2020, Figure 11 (c)).
	missesOverBase = 2
	// missesWorth is the least share of the CPU time that the additional misses take at the highest cost. Proposed.
	missesWorth = 0.05
)

// costMiss is the cost of a last-level cache miss. The processor can do other work meanwhile, or fetch several lines at
// once. It decrypts and checks lines of an enclave.
var costMiss = cost.Cycles{
	What: "a last-level cache miss", Low: 40, High: 400,
	Source: "proposed: 90 ns of latency, most of which can be hidden, and the memory encryption's share",
}

// Signals of this rule alone.
var (
	baselineSignal = engine.Signal{
		Name: "baseline", Unit: "1/s", Help: "last-level cache misses for each CPU second in the hour before the window",
		Query: "sum by (workload, instance) (rate(teescope_llc_misses_total[1h] offset $window)) / " +
			"sum by (workload, instance) (rate(teescope_cpu_seconds_total[1h] offset $window))",
	}
	referencesSignal = engine.Signal{
		Name: "references", Query: perSecond("teescope_llc_references_total"), Unit: "1/s", Help: "accesses that reached the last-level cache",
	}
)

// Thresholds that the configuration can replace.
var (
	missesRatio = engine.Threshold{Name: "misses", Default: missesOverBase, Unit: "1", Help: "minimum ratio of misses to the baseline"}
	missesCost  = engine.Threshold{Name: "share", Default: missesWorth, Unit: "ratio", Help: "minimum share of the CPU time"}
)

func llcMisses() engine.Rule {
	return engine.Rule{
		Name: LLCMisses, Title: "more last-level cache misses than before",
		Code:        codelink.CPU,
		Threads:     analysis.ThreadCPU,
		CompetesFor: analysis.SharedCPU,
		Thresholds:  []engine.Threshold{missesRatio, missesCost},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, missesSignal, baselineSignal, referencesSignal, migrationsSignal,
		},
		Judge: judgeLLCMisses,
		NotWhen: []string{
			"the workload does other work than in the hour before: a growing database has more misses by itself",
			"the workload ran for less than a few minutes before the window",
			"the enclave is a production enclave (SGX): the counters do not count inside it, so only the outside is compared",
		},
		Sources: []string{"TEEMon, Middleware 2020, 6.5 and Figure 11 (c)", costMiss.Source},
	}
}

func judgeLLCMisses(w engine.Workload) *engine.Verdict {
	v, ok := figures(w, cpuSignal, missesSignal, baselineSignal)
	if !ok || v[cpuSignal] < w.Least(leastBusy) || v[baselineSignal] <= 0 {
		return nil
	}
	usual := v[baselineSignal] * v[cpuSignal]
	low, high := costMiss.CPU(v[missesSignal]-usual, w.Clock)
	if v[missesSignal] < w.LeastFor(missesRatio)*usual || high < w.LeastFor(missesCost)*v[cpuSignal] {
		return nil
	}
	verdict := &engine.Verdict{
		Confidence: analysis.Possible,
		Cause: fmt.Sprintf("%s last-level cache misses for each CPU second, %s times as many as in the hour before",
			figure(v[missesSignal]/v[cpuSignal]), figure(v[missesSignal]/usual)),
		Evidence: []string{missesSignal.Name, baselineSignal.Name, referencesSignal.Name, cpuSignal.Name, migrationsSignal.Name},
		Advice: []string{
			"look for another workload that fills the cache: compare rate(teescope_llc_misses_total[1m]) of all workloads",
			"separate the workloads: pin them to different sockets, or divide the cache (resctrl, Intel CAT)",
			"if the working set has grown, make it smaller: in an enclave each missed line is also decrypted and checked",
		},
	}
	if environmentOf(w).protected() {
		low, high = capped(low, high, v[cpuSignal])
		verdict.Saves(w, low, high, costMiss.Assumption(), w.Clock.Assumption(),
			"the rate of misses returns to that of the hour before")
	} else {
		verdict.Severity = analysis.Info
	}
	return verdict
}
