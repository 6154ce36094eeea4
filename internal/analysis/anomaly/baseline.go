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

	recentSpan = 26 * time.Hour // a job that runs each day may be late
	rawSpan    = 4 * time.Hour  // without stored windows, they are computed from the scraped series
	// recentGuard excludes the most recent time from the history, so that a new anomaly is not compared with itself.
	recentGuard = 15 * time.Minute
	// seasonSpread is the largest distance of the windows of other days from the same time of day.
	seasonSpread = 15 * time.Minute
	day          = 24 * time.Hour
)

// memory is the history of one metric of one workload.
type memory struct {
	recent []query.Point
	days   map[time.Time][]float64 // by the moment of the same time of day
	weeks  map[time.Time][]float64
}

// A library reads the history of each metric when it is needed.
type library struct {
	q    *query.Asker
	at   time.Time
	span time.Duration // of a window
	by   map[string]map[query.Target]*memory
}

func (l *library) of(m window.Metric, p query.Target) *memory {
	if l.by[m.Name] == nil {
		l.by[m.Name] = remember(l.q, l.at, m, l.span)
	}
	return l.by[m.Name][p]
}

// baselines compares windows with their history.
func baselines(l *library, windows []window.Stat, o Options) []Anomaly {
	var found []Anomaly
	refused := 0
	for _, w := range windows {
		if query.Collective(w.Workload) {
			continue
		}
		past, what := l.of(w.Metric, query.Target{Workload: w.Workload, Instance: w.Instance}).season(l.at.Add(-recentGuard))
		if past.n() == 0 {
			refused++
			continue
		}
		a := Anomaly{
			Rule: BaselineRule, Metric: w.Metric, Workload: w.Workload, Instance: w.Instance, Time: w.At,
			Before: past.median(), After: w.Median, History: what, Query: w.Metric.Mean(query.Duration(w.Window)),
		}
		a.Z, _ = past.distance(w.Median.Value, w.Metric.Least)
		if a.differs(o.Ratio) && past.unusual(w.Median.Value, w.Metric.Least, o.Alpha/float64(len(windows))) {
			found = append(found, a)
		}
	}
	if refused > 0 && !l.q.GaveUp() {
		l.q.Note(query.Problem{Kind: query.Absent, Error: fmt.Sprintf(
			"%d of %d series have less than %s of history and no baseline yet", refused, len(windows), query.Duration(leastRecent*l.span))})
	}
	return found
}

// differs reports whether the medians are far enough apart to matter.
func (a Anomaly) differs(ratio float64) bool {
	low, high := min(a.Before.Value, a.After.Value), max(a.Before.Value, a.After.Value)
	return high-low >= a.Metric.Least && (low <= 0 || high/low >= ratio)
}

// A record holds earlier levels of a metric, in one part for each period.
type record [][]float64

func (r record) n() int {
	n := 0
	for _, part := range r {
		n += len(part)
	}
	return n
}

func (r record) median() stat.Interval { return stat.SerialMedianInterval(slices.Concat(r...), 0.95) }

// logs returns the logarithms of levels, because load varies by factors. The least difference is added: below it a metric
// varies by amounts (Tukey's started logarithm).
func logs(levels []float64, least float64) []float64 {
	y := make([]float64, len(levels))
	for i, v := range levels {
		y[i] = math.Log(max(0, v) + least)
	}
	return y
}

// A level is new if it is beyond all earlier levels by this many standard deviations of the difference between
// consecutive windows, or by this ratio. Periodic work has been at its level before, but never at exactly this one.
// Proposed.
const (
	beyond      = 5
	beyondRatio = 1.25
)

// never reports whether this level is clearly beyond all earlier levels.
func (r record) never(level, least float64) bool {
	y := logs(slices.Concat(r...), least)
	steps := make([]float64, 0, len(y))
	for i := 1; i < len(y); i++ {
		steps = append(steps, y[i]-y[i-1])
	}
	margin, now := min(beyond*stat.Spread(steps)/math.Sqrt2, math.Log(beyondRatio)), logs([]float64{level}, least)[0]
	return now < slices.Min(y)-margin || now > slices.Max(y)+margin
}

// unusual reports whether a level is beyond all earlier ones, and whether the probability that it belongs to the same
// history is at most alpha.
func (r record) unusual(level, least, alpha float64) bool {
	_, chance := r.distance(level, least)
	return chance <= alpha && r.never(level, least)
}

// distance tests whether a level belongs to the record, and returns its distance in standard deviations. Neighbouring
// windows depend on each other, but periods count as independent.
func (r record) distance(level, least float64) (z, p float64) {
	return stat.Further(logs([]float64{level}, least)[0], logs(slices.Concat(r...), least), len(r))
}

// season returns the history to compare with, and its description. It prefers the same hour of the week, then of the
// day, then the last day. It returns nothing when there is too little history.
func (m *memory) season(before time.Time) (past record, what string) {
	recent, season := m.before(before)
	switch {
	case season.n() > 0 && len(m.weeks) >= leastWeeks:
		return season, fmt.Sprintf("the same hour of the week in %d weeks", len(season))
	case season.n() > 0:
		return season, fmt.Sprintf("the same hour of %d days", len(season))
	}
	return recent, fmt.Sprintf("%d windows before it", recent.n())
}

// before returns the last day until a moment, and the same hour of earlier weeks or days. Each is empty if there is too
// little of it.
func (m *memory) before(moment time.Time) (recent, season record) {
	if m == nil {
		return nil, nil
	}
	var last []float64
	for _, p := range m.recent {
		if !p.Time.After(moment) {
			last = append(last, p.Value)
		}
	}
	if len(last) >= leastRecent {
		recent = record{last}
	}
	by := m.weeks
	if len(by) < leastWeeks {
		by = m.days
	}
	if len(by) >= leastWeeks && len(m.days) >= leastDays {
		for _, at := range slices.SortedFunc(maps.Keys(by), time.Time.Compare) {
			season = append(season, by[at])
		}
	}
	return recent, season
}

// remember reads the history of a metric: the medians of stored windows.
func remember(q *query.Asker, at time.Time, m window.Metric, span time.Duration) map[query.Target]*memory {
	all := make(map[query.Target]*memory)
	of := func(p query.Target) *memory {
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
		of(query.TargetOf(s.Labels)).recent = s.Points
	}
	seasonal := func(period time.Duration, periods int, by func(*memory) map[time.Time][]float64) {
		most := 0
		add := func(shift time.Duration) {
			for _, s := range q.Range(kept, at.Add(-time.Duration(periods)*period+shift), at.Add(-period+shift), period) {
				to := by(of(query.TargetOf(s.Labels)))
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
	if !slices.ContainsFunc(slices.Collect(maps.Values(all)), func(m *memory) bool { return len(m.days) >= leastDays }) {
		return all
	}
	carried := 0
	for p, weeks := range window.ReadWeeks(q, at, 2*seasonSpread, span, m) {
		for i, levels := range weeks {
			carried = max(carried, i)
			of(p).weeks[at.Add(-time.Duration(i)*7*day)] = levels
		}
	}
	if carried < leastWeeks { // a database that keeps windows for many weeks need not carry them
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
