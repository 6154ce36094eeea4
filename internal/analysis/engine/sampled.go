// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/promql"
)

// The agent samples frequent events when counting them all would exceed its budget. It does not count them when
// sampling exceeds it too (docs/decisions/overhead.md).
const (
	varianceQuery = `sum by (workload, instance, family) (increase(teescope_sampling_variance_total[$window])) > 0`
	offQuery      = `max by (instance) (max_over_time(teescope_self_level{level="off"}[$window])) > 0`
	notCounted    = "frequent events were not counted in a part of the window, because watching exceeded overhead.budget"
)

// frequent maps the families of frequent events to the value of the label family of their variance.
var frequent = map[string]string{
	"teescope_syscalls_total": "syscalls", "teescope_page_faults_total": "page_faults", "teescope_page_cache_ops_total": "page_cache",
}

// sampling describes the accuracy of the counts of frequent events.
type sampling struct {
	variance  map[string]map[query.Target]float64 // of the number of events in the window, by family
	uncounted map[string]bool                     // instances whose frequent events were not counted
}

// readSampling queries the accuracy of the counts of frequent events.
func readSampling(q *inquiry) (s sampling, blind string) {
	s = sampling{variance: make(map[string]map[query.Target]float64), uncounted: make(map[string]bool)}
	for _, v := range q.own(varianceQuery).samples {
		family := v.Labels["family"]
		if s.variance[family] == nil {
			s.variance[family] = make(map[query.Target]float64)
		}
		s.variance[family][query.TargetOf(v.Labels)] += v.Value
	}
	off := q.own(offQuery)
	for _, v := range off.samples {
		s.uncounted[v.Labels["instance"]] = true
	}
	if off.kind == query.Failed {
		blind = "it is not known whether events were counted"
	}
	return s, blind
}

// asksFrequent reports whether a query is about frequent events.
func asksFrequent(expr string) bool {
	return slices.ContainsFunc(promql.Metrics(expr), func(family string) bool { return frequent[family] != "" })
}

// rulesWithoutCounts returns the rules about events that were not counted on some machine. Each such machine is a
// problem.
func (s sampling) rulesWithoutCounts(q *inquiry, n needs) map[string]bool {
	unknown := make(map[string]bool)
	if len(s.uncounted) == 0 {
		return unknown
	}
	for expr, rules := range n.rules {
		if asksFrequent(expr) {
			for _, rule := range rules {
				unknown[rule] = true
			}
		}
	}
	names := slices.Sorted(maps.Keys(unknown))
	for _, instance := range slices.Sorted(maps.Keys(s.uncounted)) {
		q.note(query.Problem{Kind: query.Gap, Instance: instance, Error: notCounted, Rules: names})
	}
	return unknown
}

// interval returns the 95 % interval of the rate of all events of a workload. There is none for a part of the events,
// and none if every event was counted.
func (s sampling) interval(window time.Duration, expr string, p query.Target, value float64) (low, high *float64) {
	family, over, ok := promql.SummedRate(expr)
	if !ok || over != window {
		return nil, nil
	}
	variance := s.variance[frequent[family]][p]
	if variance == 0 {
		return nil, nil
	}
	half := 1.96 * math.Sqrt(variance) / window.Seconds()
	l, h := max(0, value-half), value+half
	return &l, &h
}
