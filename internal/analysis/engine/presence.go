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

// Queries about how much of the window a workload was there. Every workload has the gauge of its processes.
const (
	pulseQuery = `max by (workload, instance) (timestamp(teescope_processes))`
	countQuery = `max by (workload, instance) (count_over_time(teescope_processes[$window]))`
	sightQuery = `count by (workload, instance) (last_over_time({__name__=~"(teescope|sgx)_.+",workload!=""}[$slot]))`
)

const (
	pulseSteps  = 60 // of a window, in which samples are told apart
	sightSlots  = 10 // of a window, in which there are samples or not
	leastThere  = 0.5
	clockWasSet = "the clock of the machine was set within the window"
	unseen      = "it is not known which workloads were there"
)

// presence is how much of the window a workload was there.
type presence struct {
	share   float64
	samples int // 0 is unknown
}

// presences are those of the workloads and machines that are known.
type presences map[query.Target]presence

// readPresences learns from the times of samples how much of the window workloads were there.
func readPresences(q *inquiry) (there presences, blind string) {
	there = make(presences)
	step := q.Window / pulseSteps
	series, ok := q.ranged(pulseQuery, step)
	if !ok {
		blind = unseen
	}
	for _, s := range series {
		there[query.TargetOf(s.Labels)] = presence{share: q.share(s.Points, step)}
	}
	// A machine was there for as long as any workload on it.
	for t, p := range maps.Clone(there) {
		machine := query.Target{Instance: t.Instance}
		there[machine] = presence{share: max(there[machine].share, p.share)}
	}
	for _, s := range q.own(countQuery).samples {
		t := query.TargetOf(s.Labels)
		there[t] = presence{share: there[t].share, samples: int(s.Value)}
	}
	return there, blind
}

// share is how much of the window samples cover, when their moments are the points' values: as many as there are,
// times the distance that is usual between them.
func (o Options) share(points []query.Point, step time.Duration) float64 {
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
	return min(1, float64(len(moments))*usual/o.Window.Seconds())
}

// sighted adds workloads whose processes are not counted, from the times of any other sample of theirs.
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

// absence says why a workload is not judged; it is empty when it is.
func (s scene) absence(t query.Target) string {
	there, known := s.there[t]
	if !known && t.Workload == "" {
		there.share = 1 // processes are not counted there: the machine of another exporter
	}
	switch {
	case s.blind != "":
		return s.blind
	case s.stepped[t.Instance]:
		return clockWasSet
	case there.share < leastThere:
		return fmt.Sprintf("there are samples for %.0f %% of the window only: it is new, or they are missing", 100*there.share)
	}
	return ""
}
