// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
)

// Queries for the part of the window in which a workload existed. Every workload has the gauge of its processes.
const (
	pulseQuery = `max by (workload, instance) (timestamp(teescope_processes))`
	countQuery = `max by (workload, instance) (count_over_time(teescope_processes[$window]))`
	sightQuery = `count by (workload, instance) (last_over_time({__name__=~"(teescope|sgx)_.+",workload!=""}[$slot]))`
)

const (
	pulseSteps  = 60 // of a window, to distinguish samples
	sightSlots  = 10 // of a window, each with or without samples
	leastThere  = 0.5
	clockWasSet = "the clock of the machine was set within the window"
	unseen      = "it is not known which workloads existed"
)

// presence is the part of the window in which a workload existed.
type presence struct {
	share    float64
	samples  int           // 0 is unknown
	age      time.Duration // from the first sample in the window to its end
	unbroken bool          // the samples cover that time
}

// presences holds the presence of all known workloads and machines.
type presences map[query.Target]presence

// readPresences derives the presence of workloads from the times of their samples.
func readPresences(q *inquiry) (there presences, blind string) {
	there = make(presences)
	step := q.Window / pulseSteps
	series, ok := q.ranged(pulseQuery, step)
	if !ok {
		blind = unseen
	}
	for _, s := range series {
		there[query.TargetOf(s.Labels)] = q.presence(s.Points, step)
	}
	// A machine existed for at least as long as any workload on it.
	for t, p := range maps.Clone(there) {
		machine := query.Target{Instance: t.Instance}
		if _, known := there[machine]; !known || p.share > there[machine].share {
			there[machine] = p
		}
	}
	for _, s := range q.own(countQuery).samples {
		t := query.TargetOf(s.Labels)
		p := there[t]
		p.samples = int(s.Value)
		there[t] = p
	}
	return there, blind
}

// presence returns the part of the window that samples cover. The points' values are the samples' times. The part is the
// number of samples times their usual distance, but no more than the time since the first sample: the first samples of an
// agent come more often than later ones.
func (o Options) presence(points []query.Point, step time.Duration) presence {
	begin := float64(o.At.Add(-o.Window).UnixMilli()) / 1000
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
	if len(moments) == 0 {
		return presence{}
	}
	age := begin + o.Window.Seconds() - moments[0]
	covered := min(float64(len(moments))*usual, age+usual, o.Window.Seconds())
	return presence{
		share:    covered / o.Window.Seconds(),
		age:      time.Duration(age * float64(time.Second)),
		unbroken: covered >= steady*age,
	}
}

// sighted adds workloads whose processes are not counted, from the times of their other samples.
func (there presences) sighted(q *inquiry, targets []query.Target) (all presences, blind string) {
	known := func(t query.Target) bool { _, ok := there[t]; return ok }
	if !slices.ContainsFunc(targets, func(t query.Target) bool { return !known(t) }) {
		return there, ""
	}
	all = maps.Clone(there)
	slot := (q.Window / sightSlots).Truncate(time.Millisecond)
	series, ok := q.ranged(strings.ReplaceAll(sightQuery, "$slot", query.Duration(slot)), slot)
	if !ok {
		return all, unseen
	}
	for _, s := range series {
		if t := query.TargetOf(s.Labels); !known(t) {
			all[t] = presence{share: float64(len(s.Points)) / sightSlots}
		}
	}
	return all, ""
}

// absence returns why a workload is not judged, or an empty string.
func (s scene) absence(t query.Target) string {
	there, known := s.there[t]
	if !known && t.Workload == "" {
		there.share = 1 // a machine of another exporter, which does not count processes
	}
	switch {
	case s.blind != "":
		return s.blind
	case s.stepped[t.Instance]:
		return clockWasSet
	case there.share < leastThere:
		return fmt.Sprintf("samples cover only %.0f %% of the window: the workload is new, or samples are missing", 100*there.share)
	}
	return ""
}
