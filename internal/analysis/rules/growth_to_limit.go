// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/stat"
)

// GrowthToLimit names the rule of this file.
const GrowthToLimit = "growth-to-limit"

const (
	// leastGrown is the least growth within the trend, in parts of the limit. Proposed: the programs of a healthy server
	// vary by less.
	leastGrown = 0.02
	// leastUsed is the least part of the limit that is in use, for a forecast to be worth a query over hours. Proposed.
	leastUsed = 0.2
	// leastPoints is the least number of values: half of a trend, or an hour and a half of windows of five minutes.
	leastPoints = 9
	// evenGrowth is the least part of the whole growth in each third of the time. A third of even growth has 0.33. A start
	// that comes to rest and a single step have less. Proposed: half of that.
	evenGrowth = 0.16
	// farthest is the longest forecast, in lengths of the trend. Proposed.
	farthest = 3
	// wasFull is the part of a limit from which an earlier peak counts as the same growth, ended by the limit. Below it, the
	// use fell by itself. Proposed: the peak is looked for every ten minutes, in which fast growth takes some percent.
	wasFull = 0.9
)

// Signals and trends of this rule alone.
var (
	memoryPeakSignal = engine.Signal{
		Name: "memory_peak", Unit: "ratio", Help: "largest share of the memory limit that was the programs' own, from a day to three hours ago",
		Query: ofContainer("max", "max_over_time((container_memory_rss / (container_spec_memory_limit_bytes > 0))[21h:10m] offset 3h)"),
	}
	tcsUsedSignal = engine.Signal{
		Name: "tcs_used", Unit: "ratio", Help: "threads of the workload by thread control structures (TCS) of its enclaves",
		Query: tcsUsed("teescope_threads"),
	}
	memoryTrend = engine.Trend{
		Name: "memory", Worth: ownMemorySignal, Least: leastUsed,
		Query: ofContainer("max", "min_over_time(container_memory_rss[$window]) / (container_spec_memory_limit_bytes > 0)"),
	}
	threadsTrend = engine.Trend{
		Name: "threads", Worth: tcsUsedSignal, Least: leastUsed, Query: tcsUsed("min_over_time(teescope_threads[$window])"),
	}
)

func tcsUsed(threads string) string {
	return "sum by (workload, instance) (" + threads + ") / (sum by (workload, instance) " +
		"(sgx_enclave_threads * on (instance, enclave, pid) group_left (workload) sgx_enclave_info) > 0)"
}

func growthToLimit() engine.Rule {
	return engine.Rule{
		Name: GrowthToLimit, Title: "growth that will reach a limit",
		Signals: []engine.Signal{teeSignal, ownMemorySignal, memoryPeakSignal, tcsUsedSignal},
		Trends:  []engine.Trend{memoryTrend, threadsTrend},
		Judge:   judgeGrowthToLimit,
		NotWhen: []string{
			"the program fills a cache that ends below the limit, or frees memory more rarely than once in the time that was looked at",
			"the load grows, and falls again before the limit is reached",
		},
		Sources: []string{
			"Theil 1950; Sen, JASA 63, 1968: a slope that outliers do not move, with an interval",
			"Hamed and Rao, J. Hydrology 204, 1998: its interval for values that depend on each other",
			"kernel: Documentation/admin-guide/cgroup-v2.rst (memory.max)",
		},
	}
}

func judgeGrowthToLimit(w engine.Workload) *engine.Verdict {
	if g, ok := grows(w, memoryTrend); ok {
		if peak, known := w.Value(memoryPeakSignal); known && peak >= g.now && peak < wasFull {
			return nil // it was as large before, and fell without reaching the limit
		}
		return g.verdict("the memory that its programs do not give back", "the container's memory limit", ownMemorySignal.Name,
			"find what keeps the memory: a heap profile now and one in an hour", "restart it at a time of your choice, before the kernel kills it",
			"raise the memory limit, if the growth has an end above it")
	}
	// In Gramine each thread of the application is a thread of the process. Other runtimes have threads that never enter.
	if e := environmentOf(w); !e.enclave() || e.family() != "Gramine" {
		return nil
	}
	if g, ok := grows(w, threadsTrend); ok {
		return g.verdict("the number of its threads", "the enclave's room for threads (TCS)", tcsUsedSignal.Name,
			"find the threads that never end: connections without a time limit, pools without a bound",
			"raise sgx.max_threads, if the growth has an end above it")
	}
	return nil
}

// growth is an even growth toward a limit, in parts of the limit.
type growth struct {
	then, now     float64       // least use since, at the start and at the end of the trend
	span          time.Duration // between them
	sooner, later time.Duration // from now until the limit is reached
}

// grows judges a trend by its running minimum from the end: what was never given back. A sawtooth that returns to the same
// floor has none, however high its teeth are.
func grows(w engine.Workload, trend engine.Trend) (g growth, ok bool) {
	x, step := w.Trend(trend)
	if len(x) < leastPoints {
		return g, false
	}
	for i := len(x) - 2; i >= 0; i-- {
		x[i] = min(x[i], x[i+1])
	}
	last := len(x) - 1
	g = growth{then: x[0], now: x[last], span: time.Duration(last) * step}
	grown := g.now - g.then
	if grown < w.Least(leastGrown) || g.now < w.Least(leastUsed) || g.now >= 1 {
		return g, false
	}
	for third := range 3 {
		if x[last*(third+1)/3]-x[last*third/3] < w.Least(evenGrowth)*grown {
			return g, false
		}
	}
	slope, ok := stat.Trend(x, 0.95)
	if !ok || slope.Low <= 0 || !slope.Bounded() {
		return g, false
	}
	// Each value is the least of a window, so that of growing use is from the window's start.
	until := func(slope float64) time.Duration {
		return max(0, time.Duration((1-g.now)/slope*float64(step))-time.Duration(w.Window*float64(time.Second)))
	}
	if until(slope.Value) > time.Duration(w.Most(farthest)*float64(g.span)) {
		return g, false
	}
	g.sooner, g.later = until(slope.High), until(slope.Low)
	return g, true
}

// verdict has no severity above info: it did not happen yet, and the growth may end.
func (g growth) verdict(what, limit, evidence string, advice ...string) *engine.Verdict {
	when := length(g.sooner)
	if later := length(g.later); later != when {
		when += " to " + later
	}
	return &engine.Verdict{
		Severity: analysis.Info, Confidence: analysis.Possible,
		Cause: fmt.Sprintf("%s grew from %s to %s of %s in %s, without falling back: if it goes on, it reaches the limit in %s",
			what, percent(g.then), percent(g.now), limit, length(g.span), when),
		Evidence: []string{evidence},
		Advice:   advice,
	}
}

// length formats a time in minutes, hours or days.
func length(d time.Duration) string {
	switch {
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	}
	return fmt.Sprintf("%.1f d", d.Hours()/24)
}
