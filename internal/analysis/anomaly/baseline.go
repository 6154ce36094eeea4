// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/window"
	"github.com/teescope/teescope/internal/lib/stat"
)

// The least history of a baseline. Its observations are consecutive windows of five minutes.
const (
	leastRecent = 36 // of five minutes: three hours
	leastDays   = 7
	leastWeeks  = 4

	recentSpan = 24 * time.Hour
	rawSpan    = 4 * time.Hour // without stored windows, they are computed from the scraped series
	// recentGuard excludes the most recent time from the history, so that a new anomaly is not compared with itself.
	recentGuard = 15 * time.Minute
	// seasonSpread is the largest distance of the windows of other days from the same time of day.
	seasonSpread = 15 * time.Minute
	day          = 24 * time.Hour
)

// memory is the history of one metric of one workload.
type memory struct {
	recent []float64
	days   map[time.Time][]float64 // by the moment of the same time of day
	weeks  map[time.Time][]float64
}

// baselines compares windows with their history.
func baselines(q *query.Asker, at time.Time, windows []window.Stat, o Options) []Anomaly {
	var found []Anomaly
	refused := 0
	for i := 0; i < len(windows); {
		metric, end := windows[i].Metric, i
		for end < len(windows) && windows[end].Metric.Name == metric.Name {
			end++
		}
		memories := remember(q, at, metric, windows[i].Window)
		for _, w := range windows[i:end] {
			if query.Collective(w.Workload) {
				continue
			}
			before, what := memories[query.Target{Workload: w.Workload, Instance: w.Instance}].season()
			if before == nil {
				refused++
				continue
			}
			if a, unusual := compare(w, before, what, o); unusual {
				found = append(found, a)
			}
		}
		i = end
	}
	if refused > 0 && !q.GaveUp() {
		q.Note(query.Problem{Kind: query.Absent, Error: fmt.Sprintf(
			"%d of %d series have less than %s of history and no baseline yet", refused, len(windows), query.Duration(leastRecent*windows[0].Window))})
	}
	return found
}

func compare(w window.Stat, before []float64, what string, o Options) (a Anomaly, unusual bool) {
	a = Anomaly{
		Rule: BaselineRule, Metric: w.Metric, Workload: w.Workload, Instance: w.Instance, Time: w.At,
		Before: stat.MedianInterval(before, 0.95), After: w.Median, Z: stat.RobustZ(w.Median.Value, before), History: what,
		Query: w.Metric.Mean(query.Duration(w.Window)),
	}
	is, was := a.After.Value, a.Before.Value
	low, high := min(is, was), max(is, was)
	return a, math.Abs(a.Z) >= o.Z && high-low >= w.Metric.Least && (low <= 0 || high/low >= o.Ratio)
}

// season returns the history to compare with, and its description. It prefers the same hour of the week, then of the
// day, then the last day. It returns nothing when there is too little history.
func (m *memory) season() (before []float64, what string) {
	if m == nil {
		return nil, ""
	}
	gather := func(by map[time.Time][]float64) (all []float64) {
		for _, at := range slices.SortedFunc(maps.Keys(by), time.Time.Compare) {
			all = append(all, by[at]...)
		}
		return all
	}
	switch {
	case len(m.weeks) >= leastWeeks:
		return gather(m.weeks), fmt.Sprintf("the same hour of the week in %d weeks", len(m.weeks))
	case len(m.days) >= leastDays:
		return gather(m.days), fmt.Sprintf("the same hour of %d days", len(m.days))
	case len(m.recent) >= leastRecent:
		return m.recent, fmt.Sprintf("%d windows before it", len(m.recent))
	}
	return nil, ""
}

// remember reads the history of a metric: the medians of stored windows.
func remember(q *query.Asker, at time.Time, m window.Metric, span time.Duration) map[query.Target]*memory {
	all := make(map[query.Target]*memory)
	of := func(s query.Series) *memory {
		p := query.TargetOf(s.Labels)
		if all[p] == nil {
			all[p] = &memory{days: make(map[time.Time][]float64), weeks: make(map[time.Time][]float64)}
		}
		return all[p]
	}
	kept := fmt.Sprintf(`max by (instance, workload) (%s{metric=%q,stat="median",window=%q})`, window.ValueFamily, m.Name, query.Duration(span))
	recent := q.Range(kept, at.Add(-recentSpan), at.Add(-recentGuard), span)
	if len(recent) == 0 {
		recent = q.Range(m.Mean(query.Duration(span)), at.Add(-rawSpan), at.Add(-recentGuard), span)
	}
	for _, s := range recent {
		of(s).recent = query.Values(s.Points)
	}
	seasonal := func(period time.Duration, periods int, by func(*memory) map[time.Time][]float64) {
		most := 0
		add := func(shift time.Duration) {
			for _, s := range q.Range(kept, at.Add(-time.Duration(periods)*period+shift), at.Add(-period+shift), period) {
				to := by(of(s))
				for _, p := range s.Points {
					to[p.Time.Add(-shift)] = append(to[p.Time.Add(-shift)], p.Value)
				}
				most = max(most, len(to))
			}
		}
		if add(0); most < periods/2 { // the query covers twice the needed periods
			return
		}
		for shift := span; shift <= seasonSpread; shift += span {
			add(shift)
			add(-shift)
		}
	}
	seasonal(day, 2*leastDays, func(m *memory) map[time.Time][]float64 { return m.days })
	if slices.ContainsFunc(slices.Collect(maps.Values(all)), func(m *memory) bool { return len(m.days) >= leastDays }) {
		seasonal(7*day, 2*leastWeeks, func(m *memory) map[time.Time][]float64 { return m.weeks })
	}
	return all
}

// largest sorts anomalies by the size of the change, descending.
func largest(a, b Anomaly) int {
	return cmp.Or(cmp.Compare(b.factor(), a.factor()), cmp.Compare(a.Metric.Name, b.Metric.Name))
}

// factor returns the ratio of the larger median to the smaller one. It is infinite if one is zero.
func (a Anomaly) factor() float64 {
	low, high := min(a.Before.Value, a.After.Value), max(a.Before.Value, a.After.Value)
	if low <= 0 {
		return math.Inf(1)
	}
	return high / low
}
