// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
)

const (
	// trendSteps is the number of values of a trend.
	trendSteps = 18
	// trendStride is the distance of two values of a trend, in windows. Together they cover three hours of windows of five
	// minutes. Proposed: a forecast for a day needs hours, and a leak that takes days is found later.
	trendStride = 2
)

// A Trend is a query whose results at several times a rule reads. It is asked once for a machine, and only if a signal of the
// rule shows that it is worth it: a query over hours is expensive.
type Trend struct {
	Name  string
	Query string // as that of a [Signal]
	Worth Signal // of the same rule; the trend is asked if a sample of it is at least Least
	Least float64
}

// trends holds the answers by query and target.
type trends map[string]map[query.Target][]query.Point

// readTrends asks the trends of rules.
func readTrends(q *inquiry, rules []Rule, found answers) trends {
	all := make(trends)
	for _, rule := range rules {
		for _, t := range rule.Trends {
			if _, asked := all[t.Query]; !asked && t.worth(found[q.expr(t.Worth.Query)]) {
				all[t.Query] = q.trend(rule.Name, q.expr(t.Query))
			}
		}
	}
	return all
}

// worth reports whether a sample reaches the least value.
func (t Trend) worth(a answer) bool {
	for _, s := range a.samples {
		if s.Value >= t.Least {
			return true
		}
	}
	return false
}

// trend runs one query at several times up to the end of the window.
func (q *inquiry) trend(rule, expr string) map[query.Target][]query.Point {
	step := trendStride * q.Window
	if q.silent(expr) {
		return nil
	}
	series, kind, err := q.limits().Range(q.ctx, q.source, expr, q.At.Add(-(trendSteps-1)*step), q.At, step)
	if kind != "" && kind != query.Absent {
		q.note(query.Problem{Kind: kind, Query: expr, Error: err.Error(), Rules: []string{rule}})
		return nil
	}
	by := make(map[query.Target][]query.Point, len(series))
	for _, s := range series {
		parts := query.Stretches(s.Points, step)
		last := parts[len(parts)-1]
		if newest := last[len(last)-1]; q.At.Sub(newest.Time) < step {
			by[query.TargetOf(s.Labels)] = last
		}
	}
	return by
}

// Trend returns the values of a trend up to the end of the window, the oldest first, and the distance of two of them. They
// have no gap. Without an answer there are none.
func (w Workload) Trend(t Trend) (values []float64, step time.Duration) {
	return slices.Clone(w.trends[t.Query]), time.Duration(trendStride * w.trendWindow * float64(time.Second))
}

// trendsOf returns the values of a rule's trends at a target.
func (s scene) trendsOf(rule Rule, t query.Target) map[string][]float64 {
	if len(rule.Trends) == 0 {
		return nil
	}
	values := make(map[string][]float64, len(rule.Trends))
	for _, one := range rule.Trends {
		if points := s.trends[one.Query][t]; len(points) > 0 {
			values[one.Query] = query.Values(points)
		}
	}
	return values
}

// checkTrends returns what is wrong with the trends of a rule, or nothing.
func (r Rule) checkTrends() string {
	for _, t := range r.Trends {
		asks := false
		for _, s := range r.Signals {
			asks = asks || s.Name == t.Worth.Name && s.Query == t.Worth.Query
		}
		if t.Name == "" || strings.TrimSpace(t.Query) == "" || !asks {
			return "trend " + t.Name + " needs a name, a query and a signal of the rule"
		}
	}
	return ""
}
