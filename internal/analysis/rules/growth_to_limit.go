// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/text"
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
	// slopeLevel is the level of the interval of the slope. The running minimum depends on its neighbours more than the
	// interval allows for. By simulation (TestForecastsHold): with 0.95 an interval of 95 % held in 79 % under noise.
	slopeLevel = 0.99
	// straight is the largest mean distance from a straight line, in parts of the growth. Load that wanders bends, because its
	// running minimum makes steps. By simulation (TestForecastsOfHealthyLoad): 0.07 gives three times as many false
	// forecasts of a random walk, and 0.04 misses leaks under noise.
	straight = 0.05
	// newPart is the least part of the growth above the peak of the day before. By the same simulation: without it, each
	// tooth of a slow collector that is a little higher than the one before is a forecast.
	newPart = 0.5
	// wasFull is the part of a limit from which an earlier peak counts as the same growth, ended by the limit. After a
	// lower peak, the use fell without the limit. Derived: the peak is looked for every ten minutes. Growth that takes
	// three hours, the least that has a forecast, takes 0.06 of the limit in that time.
	wasFull = 0.95
)

// Signals and trends of this rule alone.
var (
	memoryPeakSignal = engine.Signal{
		Name: "memory_peak", Unit: "ratio", Help: "most memory of the programs' own from a day to three hours ago, as a share of the current limit",
		Query: ofContainer("max", "max_over_time(container_memory_rss[21h:10m] offset 3h) / (container_spec_memory_limit_bytes > 0)"),
	}
	tcsUsedSignal = engine.Signal{
		Name: "tcs_used", Unit: "ratio", Help: "threads of the workload by thread control structures (TCS) of its enclaves",
		Query: tcsUsed("teescope_threads", ""),
	}
	epcUsedSignal = engine.Signal{
		Name: "epc_used", Unit: "ratio", Help: "enclave memory of the workload by the enclave page cache that it holds or that is free",
		Query: epcUsed("sgx_workload_resident_bytes", ""),
	}
	// Trends compare with the current limit: one that changed is not growth.
	memoryTrend = engine.Trend{
		Name: "memory", Worth: ownMemorySignal, Least: leastUsed,
		Query: ofContainer("max", "min_over_time(container_memory_rss[$window]) / (container_spec_memory_limit_bytes @ end() > 0)"),
	}
	epcTrend = engine.Trend{
		Name: "epc", Worth: epcUsedSignal, Least: leastUsed, Query: epcUsed("min_over_time(sgx_workload_resident_bytes[$window])", " @ end()"),
	}
	threadsTrend = engine.Trend{
		Name: "threads", Worth: tcsUsedSignal, Least: leastUsed, Query: tcsUsed("min_over_time(teescope_threads[$window])", " @ end()"),
	}
)

// tcsUsed divides threads by the room of the enclaves that exist at a time.
func tcsUsed(threads, at string) string {
	return "sum by (workload, instance) (" + threads + ") / (sum by (workload, instance) " +
		"(" + ofEnclave("sgx_enclave_threads"+at, at) + ") > 0)"
}

// epcUsed divides enclave memory by what the workload holds at a time and what is free then. Memory that others hold is
// excluded, so their growth is not attributed to the workload.
func epcUsed(resident, at string) string {
	return "sum by (workload, instance) (" + resident + ") / (sum by (workload, instance) (sgx_workload_resident_bytes" + at + ") " +
		"+ on (instance) group_left () sum by (instance) (sgx_epc_free_bytes" + at + ") > 0)"
}

// growthLeast is the threshold that the configuration can replace.
var growthLeast = engine.Threshold{Name: "growth", Default: leastGrown, Unit: "ratio", Help: "minimum growth in the observed time, as a share of the limit"}

func growthToLimit() engine.Rule {
	return engine.Rule{
		Name: GrowthToLimit, Title: "growth that will reach a limit",
		Thresholds: []engine.Threshold{growthLeast},
		Signals:    []engine.Signal{teeSignal, ownMemorySignal, memoryPeakSignal, epcUsedSignal, tcsUsedSignal},
		Trends:     []engine.Trend{memoryTrend, epcTrend, threadsTrend},
		Judge:      judgeGrowthToLimit,
		NotWhen: []string{
			"the program fills a cache that ends below the limit, or frees memory more rarely than once in the observed time",
			"the load grows, and falls again before the limit is reached",
			"other enclaves of the machine end, or grow too: the enclave page cache is then free for longer, or full sooner",
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
		if peak, known := w.Value(memoryPeakSignal); known && g.fellBefore(peak) {
			return nil
		}
		return g.verdict("the memory that its programs do not give back", "the container's memory limit", ownMemorySignal.Name,
			"find what keeps the memory: a heap profile now and one in an hour", "restart it at a time of your choice, before the kernel kills it",
			"raise the memory limit, if the growth has an end above it")
	}
	e := environmentOf(w)
	if !e.enclave() {
		return nil
	}
	if g, ok := grows(w, epcTrend); ok {
		return g.verdict("the memory of its enclaves", "the enclave page cache (EPC) that it holds or that is free", epcUsedSignal.Name,
			"find what keeps the memory inside: a heap profile now and one in an hour", "restart it at a time of your choice, before its pages are evicted",
			"move it or another enclave to another machine, or give the enclave a limit below that")
	}
	// In Gramine each thread of the application is a thread of the process. Other runtimes have threads that never enter.
	if e.family() != "Gramine" {
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

// fellBefore reports whether an earlier peak was nearly as large, and fell without reaching the limit.
func (g growth) fellBefore(peak float64) bool {
	return peak >= g.now-newPart*(g.now-g.then) && peak < wasFull
}

// grows judges a trend.
func grows(w engine.Workload, trend engine.Trend) (g growth, ok bool) {
	x, step := w.Trend(trend)
	return growthOf(w, x, step)
}

// growthOf judges values at equal distances by their running minimum from the end, which is memory that was never freed. A
// sawtooth that returns to the same floor has no growth, however high its teeth are. It overwrites the values.
func growthOf(w engine.Workload, x []float64, step time.Duration) (g growth, ok bool) {
	if len(x) < leastPoints {
		return g, false
	}
	for i := len(x) - 2; i >= 0; i-- {
		x[i] = min(x[i], x[i+1])
	}
	last := len(x) - 1
	g = growth{then: x[0], now: x[last], span: time.Duration(last) * step}
	grown := g.now - g.then
	if grown < w.LeastFor(growthLeast) || g.now < w.Least(leastUsed) || g.now >= 1 {
		return g, false
	}
	for third := range 3 {
		if x[last*(third+1)/3]-x[last*third/3] < w.Least(evenGrowth)*grown {
			return g, false
		}
	}
	slope, ok := stat.Trend(x, slopeLevel)
	if !ok || slope.Low <= 0 || !slope.Bounded() {
		return g, false
	}
	fit := fitted(x, slope.Value)
	if fit.mean > w.Most(straight)*grown {
		return g, false
	}
	// Each value is the least of a window, so that of growing use is from the window's start: half a step ago.
	until := func(level, slope float64) time.Duration {
		return max(0, time.Duration(((1-level)/slope-0.5)*float64(step)))
	}
	if until(fit.end, slope.Value) > time.Duration(w.Most(farthest)*float64(g.span)) {
		return g, false
	}
	g.sooner, g.later = until(fit.end+fit.most, slope.High), until(fit.end-fit.most, slope.Low)
	return g, true
}

// A line is a straight line through values.
type line struct {
	end        float64 // its value at the last one
	mean, most float64 // distance of the values from it
}

// fitted returns the line with this slope that has as many values above as below.
func fitted(x []float64, slope float64) (l line) {
	last := float64(len(x) - 1)
	rest := make([]float64, len(x))
	for i, v := range x {
		rest[i] = v + slope*(last-float64(i))
	}
	l.end = stat.Quantile(slices.Sorted(slices.Values(rest)), 0.5)
	for _, r := range rest {
		away := math.Abs(r - l.end)
		l.mean, l.most = l.mean+away/float64(len(rest)), max(l.most, away)
	}
	return l
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
			what, text.Percent(g.then), text.Percent(g.now), limit, length(g.span), when),
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
