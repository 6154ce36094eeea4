// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/analysis/query"
)

// Frequent events are sampled while watching them all would take more than the agent's budget, and are not counted at all
// when even that does (docs/decisions/overhead.md).
const (
	varianceQuery = `sum by (workload, instance, family) (increase(teescope_sampling_variance_total[$window])) > 0`
	offQuery      = `max by (instance) (max_over_time(teescope_self_level{level="off"}[$window])) > 0`
	notCounted    = "frequent events were not counted in a part of the window, because watching took more than overhead.budget"
)

// frequent maps the families of frequent events to what the label family of their variance calls them.
var frequent = map[string]string{
	"teescope_syscalls_total": "syscalls", "teescope_page_faults_total": "page_faults", "teescope_page_cache_ops_total": "page_cache",
}

// sampling asks how sure the counts of frequent events are.
func (e *evaluation) sampling() {
	e.variance, e.uncounted = make(map[string]map[query.Target]float64), make(map[string]bool)
	for _, s := range e.own(varianceQuery).samples {
		family := s.Labels["family"]
		if e.variance[family] == nil {
			e.variance[family] = make(map[query.Target]float64)
		}
		e.variance[family][query.TargetOf(s.Labels)] += s.Value
	}
	off := e.own(offQuery)
	for _, s := range off.samples {
		e.uncounted[s.Labels["instance"]] = true
	}
	if off.kind == query.Failed {
		e.blind = "it is not known whether events were counted"
	}
}

// asksFrequent tells whether a query is about frequent events.
func asksFrequent(query string) bool {
	for family := range frequent {
		if strings.Contains(query, family) {
			return true
		}
	}
	return false
}

// noteUncounted says which rules know nothing of machines whose frequent events were not counted.
func (e *evaluation) noteUncounted(needs map[string][]string) {
	if len(e.uncounted) == 0 {
		return
	}
	for query, rules := range needs {
		if asksFrequent(query) {
			for _, rule := range rules {
				e.result.unknownRules[rule] = true
			}
		}
	}
	var unknown, instances []string
	for rule := range e.result.unknownRules {
		unknown = append(unknown, rule)
	}
	for instance := range e.uncounted {
		instances = append(instances, instance)
	}
	slices.Sort(unknown)
	slices.Sort(instances)
	for _, instance := range instances {
		e.problem(query.Problem{Kind: query.Gap, Instance: instance, Error: notCounted, Rules: unknown})
	}
}

// wholeFamily is the rate of all events of a family, by any label.
var wholeFamily = regexp.MustCompile(`^sum by \([a-z_, ]+\) \(rate\((\w+)\[\$window\]\)\)$`)

// interval is how far the rate of all events of a workload may be from the truth, 95 times in 100; of a part of them it is
// not known. There is none where every event was counted.
func (e *evaluation) interval(signal Signal, p query.Target, value float64) (low, high *float64) {
	parts := wholeFamily.FindStringSubmatch(signal.Query)
	if parts == nil {
		return nil, nil
	}
	variance := e.variance[frequent[parts[1]]][p]
	if variance == 0 {
		return nil, nil
	}
	half := 1.96 * math.Sqrt(variance) / e.Window.Seconds()
	l, h := max(0, value-half), value+half
	return &l, &h
}
