// SPDX-License-Identifier: Apache-2.0

// Package anomaly finds metrics of a workload that differ from their history, or whose level changed. It lists events
// at the same time.
//
// It does not name a cause, and does not rate a difference.
package anomaly

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/window"
	"github.com/teescope/teescope/internal/lib/stat"
)

// The names of findings without a diagnosis rule, in [analysis.Finding].
const (
	BaselineRule = "baseline" // a workload differs from its history
	ChangeRule   = "change"   // the level of a metric changed
)

// Options define what is unusual. docs/decisions/statistics.md explains the defaults of the zero value.
type Options struct {
	// Changes are searched in the means of each Step over Span.
	Span, Step time.Duration // 30 minutes, 30 s
	// Alpha is the largest probability that an evaluation reports noise as a change, over all its series together.
	Alpha float64 // 0.001
	// Ratio is the least ratio of the medians, in either direction.
	Ratio float64 // 1.25 for baselines; [stat.DefaultThresholds] has the ratio for changes
	// Margin is the largest distance between a change and an event that are reported together.
	Margin   time.Duration // 90 s
	PerQuery time.Duration // time limit of a query; 10 s
	Metrics  []window.Metric
}

func (o Options) withDefaults() Options {
	o.Span = cmp.Or(max(0, o.Span), 30*time.Minute)
	o.Step = cmp.Or(max(0, o.Step), 30*time.Second)
	o.Step = max(o.Step, o.Span/window.MaxObservations)
	o.Margin = cmp.Or(max(0, o.Margin), 90*time.Second)
	o.PerQuery = cmp.Or(max(0, o.PerQuery), 10*time.Second)
	o.Alpha = cmp.Or(max(0, o.Alpha), 0.001)
	o.Ratio = cmp.Or(max(0, o.Ratio), 1.25)
	if o.Metrics == nil {
		o.Metrics = window.Metrics()
	}
	return o
}

// An Anomaly is one metric of one workload that differs from before.
type Anomaly struct {
	Rule     string // [BaselineRule] or [ChangeRule]
	Metric   window.Metric
	Workload string // "" is the machine
	Instance string
	Time     time.Time // of the change; for a baseline, the end of the compared window
	// Medians before and after a change, or of the history and of the window, at 95 %, in the metric's unit.
	Before, After stat.Interval
	Query         string // that shows the anomaly

	// Fields of a change.
	Ratio stat.Interval // of the medians, at 95 %
	Delta stat.Interval // Cliff's delta, at 95 %
	P     float64       // of the Mann-Whitney test, corrected for the positions in the series
	Shift float64       // P of this distance of the medians, corrected for the positions and for all series

	// Fields of a baseline.
	History string // description of the compared history

	// Z is in standard deviations of the logarithms of the history, for a baseline. It is infinite for a metric that never
	// varied.
	Z float64

	Coincides []Coincidence
}

// Find compares the windows with their history, looks for changes of level, and adds events at the same time. The
// windows must come from [window.Compute] for the same time. Only workloads with a window are examined.
func Find(ctx context.Context, source query.Source, at time.Time, windows []window.Stat, options Options) ([]Anomaly, []query.Problem) {
	if len(windows) == 0 {
		return nil, nil
	}
	o := options.withDefaults()
	q := query.NewAsker(ctx, source, o.PerQuery)
	o.Metrics = window.Existing(ctx, source, o.Metrics, o.PerQuery)
	start := at.Add(-o.Span + o.Step)
	known := history(q, start, at, o.Step)
	there := make(map[query.Target]bool)
	for _, w := range windows {
		there[query.Target{Workload: w.Workload, Instance: w.Instance}] = !query.Collective(w.Workload)
	}
	l := &library{q: q, at: at, span: windows[0].Window, by: make(map[string]map[query.Target]*memory)}
	found := append(changes(l, start, known, there, o), baselines(l, windows, o)...)
	for i := range found {
		found[i].Coincides = known.around(&found[i], l.span, o.Margin)
	}
	return found, q.Problems
}

// changes looks for changes of level in every series of the existing workloads.
func changes(l *library, start time.Time, known past, there map[query.Target]bool, o Options) []Anomaly {
	sure := stat.DefaultThresholds()
	tested := 0
	var found []Anomaly
	for _, m := range o.Metrics {
		expr := m.Mean(query.Duration(o.Step))
		for _, s := range known.joined(l.q.Range(expr, start, l.at, o.Step)) {
			p := query.TargetOf(s.Labels)
			if !there[p] || m.Machine != (p.Workload == "") {
				continue
			}
			tested++
			for _, c := range stat.Changes(query.Values(s.Points), sure) {
				if math.Abs(c.After.Value-c.Before.Value) < m.Least {
					continue
				}
				found = append(found, Anomaly{
					Rule: ChangeRule, Metric: m, Workload: p.Workload, Instance: p.Instance, Query: expr,
					// A point is the mean of the step before it, so the change lies in the step of the first point
					// after it.
					Time:   s.Points[c.At].Time.Add(-o.Step),
					Before: c.Before, After: c.After, Ratio: c.Ratio, Delta: c.Delta, P: c.P, Shift: c.Shift,
				})
			}
		}
	}
	// Every position in every series can look like a change by chance: Bonferroni correction.
	chances := float64(tested) * float64(o.Span/o.Step)
	for i := range found {
		found[i].Shift = math.Min(1, chances*found[i].Shift)
	}
	return slices.DeleteFunc(found, func(a Anomaly) bool {
		return a.Shift > o.Alpha || !l.isNew(a, known, o.Alpha/float64(tested), o.Margin)
	})
}

// isNew reports whether the level after a change was not there before. Half an hour cannot show that: load that wanders,
// days, and periodic work change their level all the time. Without enough history, only a change next to an event is
// new.
func (l *library) isNew(a Anomaly, known past, alpha float64, margin time.Duration) bool {
	p := query.Target{Workload: a.Workload, Instance: a.Instance}
	past, season := l.of(a.Metric, p).before(a.Time)
	for old, next := range known.successor {
		if past.n() == 0 && next == p {
			past, season = l.of(a.Metric, old).before(a.Time)
		}
	}
	if past.n() == 0 {
		return len(known.around(&a, l.span, margin)) > 0
	}
	return past.unusual(a.After.Value, a.Metric.Least, alpha) && (season.n() == 0 || season.never(a.After.Value, a.Metric.Least))
}
