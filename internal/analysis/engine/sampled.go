// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
)

// The agent samples frequent events when counting them all would exceed its budget. It does not count them when
// sampling exceeds it too (docs/decisions/overhead.md).
const (
	varianceQuery = `sum by (workload, instance, family) (increase(teescope_sampling_variance_total[$window])) > 0`
	totalQuery    = `sum by (workload, instance) (rate(%s[$window]))`
	offQuery      = `max by (instance) (max_over_time(teescope_self_level{level="off"}[$window])) > 0`
	inaccurate    = "its events are estimated from samples, and in a part of their 95 % interval the cause does not exist: " +
		"analyse a longer window, or raise overhead.budget"
	notCounted = "frequent events were not counted in a part of the window, because watching exceeded overhead.budget"
)

// frequent maps the families of frequent events to the value of the label family of their variance.
var frequent = map[string]string{
	"teescope_syscalls_total": "syscalls", "teescope_page_faults_total": "page_faults", "teescope_page_cache_ops_total": "page_cache",
}

// sampling describes the accuracy of the counts of frequent events.
type sampling struct {
	variance  map[string]map[query.Target]float64 // of the number of events in the window, by family
	rate      map[string]map[query.Target]float64 // of all events in the window, by metric; only of those with a variance
	uncounted map[string]bool                     // instances whose frequent events were not counted
}

// readSampling queries the accuracy of the counts of frequent events.
func readSampling(q *inquiry) (s sampling, blind string) {
	s = sampling{
		variance: make(map[string]map[query.Target]float64), rate: make(map[string]map[query.Target]float64),
		uncounted: make(map[string]bool),
	}
	for _, v := range q.own(varianceQuery).samples {
		family := v.Labels["family"]
		if s.variance[family] == nil {
			s.variance[family] = make(map[query.Target]float64)
		}
		s.variance[family][query.TargetOf(v.Labels)] += v.Value
	}
	for metric, family := range frequent {
		if s.variance[family] == nil {
			continue
		}
		s.rate[metric] = make(map[query.Target]float64)
		for _, v := range q.own(fmt.Sprintf(totalQuery, metric)).samples {
			s.rate[metric][query.TargetOf(v.Labels)] += v.Value
		}
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

// asksFrequent reports whether a rule's query is about frequent events.
func asksFrequent(text string) bool {
	return slices.ContainsFunc(metricsIn(text), func(family string) bool { return frequent[family] != "" })
}

// rulesWithoutCounts returns the rules about events that were not counted on some machine. Each such machine is a
// problem.
func (s sampling) rulesWithoutCounts(q *inquiry, n needs) map[string]bool {
	unknown := make(map[string]bool)
	if len(s.uncounted) == 0 {
		return unknown
	}
	for expr, rules := range n.rules {
		if n.frequent[expr] {
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

// interval returns the 95 % interval of the rate of events of a workload, of all or of a part such as one system call. There is
// none if every event was counted.
func (s scene) interval(expr string, p query.Target, value float64) (low, high *float64) {
	r, ok := s.memo.ratesOf(expr)
	if !ok {
		return nil, nil
	}
	half := s.halfWidthOfPart(r.Metric, p, r.Over, value)
	if half == 0 {
		return nil, nil
	}
	l, h := max(0, value-half), value+half
	return &l, &h
}

// halfWidth returns half of the 95 % interval of the rate of all events of a metric over a part of the window. The
// variance is assumed to grow evenly through the window. It is 0 if every event was counted.
func (s sampling) halfWidth(metric string, p query.Target, window, over time.Duration) float64 {
	variance := s.variance[frequent[metric]][p] * over.Seconds() / window.Seconds()
	return 1.96 * math.Sqrt(variance) / over.Seconds()
}

// halfWidthOfPart returns half of the 95 % interval of the rate of a part of the events of a metric. The relative error of a part is
// larger than that of all by the square root of its share, because fewer were sampled.
func (s scene) halfWidthOfPart(metric string, p query.Target, over time.Duration, value float64) float64 {
	half := s.halfWidth(metric, p, s.Window, over)
	if half == 0 || value <= 0 {
		return half
	}
	return half * math.Sqrt(value/max(s.rate[metric][p], value))
}

// verdict judges one workload. Where its events were sampled, the rule also judges the lower and the upper ends of their
// 95 % intervals. All families are at the same end at once, because they have the same sampling windows.
//
// A verdict must hold at both ends. Its gain then covers the gains at both, and its severity and confidence are the
// lowest. The result is not certain if the verdict holds for the estimate and not at both ends.
func (s scene) verdict(rule Rule, w Workload) (v *Verdict, certain bool, err error) {
	v, err = ask(rule, w)
	if err != nil || v == nil {
		return nil, true, err
	}
	if len(s.rate) == 0 {
		return v, true, nil // every event was counted
	}
	for _, end := range []float64{-1, 1} {
		shifted, sampled := s.shift(rule, w, end)
		if !sampled {
			return v, true, nil
		}
		other, err := ask(rule, shifted)
		if err != nil {
			return nil, true, err
		}
		if other == nil {
			return nil, false, nil
		}
		if err := sound(other); err != nil {
			return nil, true, err
		}
		v = v.within(other)
	}
	return v, true, nil
}

// shift returns the workload with the rates of sampled events at an end of their intervals: -1 is the lower one.
func (s scene) shift(rule Rule, w Workload, end float64) (shifted Workload, sampled bool) {
	shifted = w
	shifted.values = maps.Clone(w.values)
	t := query.Target{Workload: w.Name, Instance: w.Instance}
	for _, signal := range rule.Signals {
		r, ok := s.memo.ratesOf(s.expr(signal.Query))
		if !ok {
			continue
		}
		if s.halfWidth(r.Metric, t, s.Window, r.Over) == 0 || s.rate[r.Metric][t] == 0 {
			continue
		}
		sampled = true
		moved := slices.Clone(w.values[signal.Name])
		for i, v := range moved {
			if v.Value > 0 { // or the sum of the parts would grow with their number
				moved[i].Value = max(0, v.Value+end*s.halfWidthOfPart(r.Metric, t, r.Over, v.Value))
			}
		}
		shifted.values[signal.Name] = moved
	}
	return shifted, sampled
}

// within returns the verdict with the claims that another one supports too.
func (v *Verdict) within(other *Verdict) *Verdict {
	both := *v
	both.Gain, both.Saving = v.Gain.And(other.Gain), v.Saving.And(other.Saving)
	both.most = lower(v.most, other.most)
	switch {
	case v.Severity == "":
		both.most = lower(both.most, other.Severity)
	case other.Severity == "":
		both.Severity, both.most = "", lower(both.most, v.Severity)
	default:
		both.Severity = lower(v.Severity, other.Severity)
	}
	if v.Confidence.Weight() > other.Confidence.Weight() {
		both.Confidence = other.Confidence
	}
	return &both
}

// lower returns the lower one of two severities, of which one may be empty.
func lower(a, b analysis.Severity) analysis.Severity {
	if a == "" || b != "" && a.AtLeast(b) {
		return b
	}
	return a
}

// severity returns the severity of a finding: that of the verdict, or else that of its gain and saving. was is that of the open finding.
func (v *Verdict) severity(was analysis.Severity, g *estimate.Gain, s *estimate.Saving, cores float64) analysis.Severity {
	if v.Severity != "" {
		return v.Severity
	}
	return lower(analysis.SeverityWhile(was, g, s, cores), v.most)
}
