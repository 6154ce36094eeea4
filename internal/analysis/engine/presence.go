// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/query"
)

// Queries of the engine's own. Every workload has the gauge of its processes.
const (
	pulseQuery = `max by (workload, instance) (timestamp(teescope_processes))`
	countQuery = `max by (workload, instance) (count_over_time(teescope_processes[$window]))`
	sightQuery = `count by (workload, instance) (last_over_time({__name__=~"(teescope|sgx)_.+",workload!=""}[$slot]))`
	stepsQuery = `sum by (instance) (increase(teescope_clock_steps_total[$window])) > 0`
	clockQuery = `max by (instance) (node_cpu_frequency_max_hertz or node_cpu_scaling_frequency_max_hertz or node_cpu_frequency_hertz)`
	ocallQuery = `max by (instance, bound) (teescope_enclave_crossing_seconds)`
)

const (
	pulseSteps  = 60 // of a window, in which samples are told apart
	sightSlots  = 10 // of a window, in which there are samples or not
	leastThere  = 0.5
	clockWasSet = "the clock of the machine was set within the window"
)

// presence is how much of the window a workload was there.
type presence struct {
	share   float64
	samples int // 0 is unknown
}

// machine asks what is to be known of each machine: whether its clock was set, and how fast its processor is.
func (e *evaluation) machine() {
	e.stepped, e.clocks = make(map[string]bool), make(map[string]cost.Clock)
	steps := e.own(stepsQuery)
	for _, s := range steps.samples {
		e.stepped[s.Labels["instance"]] = true
	}
	if steps.kind == query.Failed {
		e.blind = "it is not known whether the clock was set"
	}
	for _, s := range e.own(clockQuery).samples {
		if s.Value > 0 {
			e.clocks[s.Labels["instance"]] = cost.Clock{Low: s.Value, High: s.Value, Measured: true}
		}
	}
	e.ocalls = measuredOCALLs(e.own(ocallQuery).samples)
}

// measuredOCALLs are the costs that users state of their machines, by instance. What cannot be one is left out.
func measuredOCALLs(samples []query.Sample) map[string]cost.Cost {
	bounds := make(map[string]map[string]float64)
	for _, s := range samples {
		instance := s.Labels["instance"]
		if bounds[instance] == nil {
			bounds[instance] = make(map[string]float64)
		}
		bounds[instance][s.Labels["bound"]] = s.Value
	}
	costs := make(map[string]cost.Cost)
	for instance, b := range bounds {
		if low, high := b["low"], b["high"]; low > 0 && high >= low {
			costs[instance] = cost.Cost{What: cost.OCALL.What, Low: low, High: high, Timed: true, Source: "transitions.cost: measured on this machine"}
		}
	}
	return costs
}

// own asks a query of the engine itself. That it has no samples is no problem.
func (e *evaluation) own(expr string) answer {
	q := e.query(Signal{Query: expr})
	a := e.instant(q)
	if a.kind == query.Failed {
		e.problem(query.Problem{Kind: query.Failed, Query: q, Error: a.err.Error()})
	}
	return a
}

// clock is that of an instance.
func (e *evaluation) clock(instance string) cost.Clock {
	return ofInstance(e.clocks, instance, cost.UnknownClock)
}

// ocall is what an OCALL costs on an instance.
func (e *evaluation) ocall(instance string) cost.Cost {
	return ofInstance(e.ocalls, instance, cost.OCALL)
}

// ofInstance is what is known of an instance, perhaps under another port of it.
func ofInstance[T any](known map[string]T, instance string, otherwise T) T {
	if found, ok := known[instance]; ok {
		return found
	}
	for other, found := range known {
		if other == "" || query.SameHost(other, instance) {
			return found
		}
	}
	return otherwise
}

// ranged asks a query of the engine itself at moments in the window.
func (e *evaluation) ranged(expr string, step time.Duration) []query.Series {
	series, kind, err := e.limits().Range(e.ctx, e.source, expr, e.At.Add(step-e.Window), e.At, step)
	switch kind {
	case query.Failed:
		e.problem(query.Problem{Kind: kind, Query: expr, Error: err.Error()})
		e.blind = "it is not known which workloads were there"
		return nil
	case query.Bounded:
		return series[:e.MaxSamples]
	}
	return series
}

// pulse learns from the moments of their samples how much of the window workloads were there.
func (e *evaluation) pulse() {
	step := e.Window / pulseSteps
	for _, s := range e.ranged(pulseQuery, step) {
		e.there[query.TargetOf(s.Labels)] = presence{share: e.share(s.Points, step)}
	}
	// A machine was there for as long as any workload on it.
	for p, there := range maps.Clone(e.there) {
		machine := query.Target{Instance: p.Instance}
		e.there[machine] = presence{share: max(e.there[machine].share, there.share)}
	}
	for _, s := range e.own(countQuery).samples {
		p := query.TargetOf(s.Labels)
		e.there[p] = presence{share: e.there[p].share, samples: int(s.Value)}
	}
}

// share is how much of the window samples cover, when their moments are the points' values: as many as there are,
// times the distance that is usual between them.
func (e *evaluation) share(points []query.Point, step time.Duration) float64 {
	begin := float64(e.At.Add(-e.Window).UnixMilli()) / 1000
	var moments []float64
	for _, p := range points {
		if p.Value > begin {
			moments = append(moments, p.Value)
		}
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	var gaps []float64
	for i := 1; i < len(moments); i++ {
		gaps = append(gaps, moments[i]-moments[i-1])
	}
	usual := step.Seconds()
	if len(gaps) > 0 {
		slices.Sort(gaps)
		usual = max(usual, gaps[len(gaps)/2])
	}
	return min(1, float64(len(moments))*usual/e.Window.Seconds())
}

// sight does the same for workloads whose processes nobody counts, from whatever else there is.
func (e *evaluation) sight() {
	known := func(p query.Target) bool { _, ok := e.there[p]; return ok }
	if e.blind != "" || !slices.ContainsFunc(e.places, func(p query.Target) bool { return !known(p) }) {
		return
	}
	slot := (e.Window / sightSlots).Truncate(time.Millisecond)
	expr := strings.ReplaceAll(sightQuery, "$slot", query.Duration(slot))
	for _, s := range e.ranged(expr, slot) {
		if p := query.TargetOf(s.Labels); !known(p) {
			e.there[p] = presence{share: float64(len(s.Points)) / sightSlots}
		}
	}
}

// absence says why a workload is not judged; it is empty when it is.
func (e *evaluation) absence(p query.Target) string {
	there, known := e.there[p]
	if !known && p.Workload == "" {
		there.share = 1 // nobody counts processes there: another exporter's machine
	}
	switch {
	case e.blind != "":
		return e.blind
	case e.stepped[p.Instance]:
		return clockWasSet
	case there.share < leastThere:
		return fmt.Sprintf("there are samples for %.0f %% of the window only: it is new, or they are missing", 100*there.share)
	}
	return ""
}
