// SPDX-License-Identifier: Apache-2.0

// Package anomaly finds metrics of a workload that differ from their history, or whose level changed, and names what
// happened at the same time.
//
// It refuses to name a cause, and to say whether a difference is bad.
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

// The names of what is found without a rule of a cause, as an [analysis.Finding] has them.
const (
	BaselineRule = "baseline" // a workload is unlike what it has been
	ChangeRule   = "change"   // the level of a metric changed
)

// Options say what is unusual. The zero value is what docs/decisions/statistics.md says.
type Options struct {
	// Changes are looked for in the means of Step each over Span.
	Span, Step time.Duration // 30 minutes, 30 s
	// Alpha is the greatest chance that an evaluation takes noise for a change, in all its series together.
	Alpha float64 // 0.001
	// Z is how many robust standard deviations from the baseline are unusual.
	Z float64 // 6
	// Ratio is the least ratio of the medians, either way.
	Ratio float64 // 1.5 for baselines; changes have that of [stat.DefaultThresholds]
	// Margin is how far apart a change and a restart may be to be told together.
	Margin   time.Duration // 90 s
	PerQuery time.Duration // at most so long for a query; 10 s
	Metrics  []window.Metric
}

func (o Options) withDefaults() Options {
	o.Span = cmp.Or(max(0, o.Span), 30*time.Minute)
	o.Step = cmp.Or(max(0, o.Step), 30*time.Second)
	o.Step = max(o.Step, o.Span/window.MaxObservations)
	o.Margin = cmp.Or(max(0, o.Margin), 90*time.Second)
	o.PerQuery = cmp.Or(max(0, o.PerQuery), 10*time.Second)
	o.Alpha = cmp.Or(max(0, o.Alpha), 0.001)
	o.Z = cmp.Or(max(0, o.Z), 6)
	o.Ratio = cmp.Or(max(0, o.Ratio), 1.5)
	if o.Metrics == nil {
		o.Metrics = window.Metrics()
	}
	return o
}

// An Anomaly is one metric of one workload that is not as it was.
type Anomaly struct {
	Rule     string // [BaselineRule] or [ChangeRule]
	Metric   window.Metric
	Workload string // "" is the machine
	Instance string
	Time     time.Time // of the change; the end of the window that a baseline was compared with
	// Medians before and after, or of the history and of the window, at 95 %, in the metric's unit.
	Before, After stat.Interval
	Query         string // that shows it

	// Of a change.
	Ratio stat.Interval // of the medians, at 95 %
	Delta stat.Interval // Cliff's delta, at 95 %
	P     float64       // of the Mann-Whitney test, corrected for the places within the series
	Shift float64       // P of medians so far apart, corrected for the places and for all series

	// Of a baseline.
	History string // what it was compared with

	// Z is of a baseline in robust standard deviations of the history, of a change in standard errors of the medians.
	// It is infinite where nothing ever varied.
	Z float64

	Coincides []Coincidence
}

// Find compares the windows with their history and looks for changes of level, and names what happened at the
// same time. The windows are those of [window.Compute] at the same moment: only workloads that have one are looked at.
func Find(ctx context.Context, source query.Source, at time.Time, windows []window.Stat, options Options) ([]Anomaly, []query.Problem) {
	if len(windows) == 0 {
		return nil, nil
	}
	o := options.withDefaults()
	q := query.NewAsker(ctx, source, o.PerQuery)
	start := at.Add(-o.Span + o.Step)
	known := history(q, start, at, o.Step)
	there := make(map[query.Target]bool)
	for _, w := range windows {
		there[query.Target{Workload: w.Workload, Instance: w.Instance}] = !query.Collective(w.Workload)
	}
	found := changes(q, start, at, known, there, o)
	found = append(found, baselines(q, at, windows, o)...)
	for i := range found {
		found[i].Coincides = known.around(&found[i], windows[0].Window, o.Margin)
	}
	return found, q.Problems
}

// changes looks for changes of level in every series of the workloads that are there.
func changes(q *query.Asker, start, at time.Time, known past, there map[query.Target]bool, o Options) []Anomaly {
	sure := stat.DefaultThresholds()
	tested := 0
	var found []Anomaly
	for _, m := range o.Metrics {
		expr := m.Mean(query.Duration(o.Step))
		for _, s := range known.joined(q.Range(expr, start, at, o.Step)) {
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
					// A point is the mean of the step before it: the change lies in the first one after it.
					Time:   s.Points[c.At].Time.Add(-o.Step),
					Before: c.Before, After: c.After, Ratio: c.Ratio, Delta: c.Delta, P: c.P, Shift: c.Shift,
				})
			}
		}
	}
	// Each place in each series had its chance to look like a change: Bonferroni.
	chances := float64(tested) * float64(o.Span/o.Step)
	for i := range found {
		found[i].Shift = math.Min(1, chances*found[i].Shift)
	}
	return slices.DeleteFunc(found, func(a Anomaly) bool { return a.Shift > o.Alpha })
}
