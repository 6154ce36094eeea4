// SPDX-License-Identifier: Apache-2.0

// Package window computes box plots of metrics of workloads over a window, and stores them as series.
//
// It does not interpret them.
package window

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/stat"
)

// Options select the windows. The zero value means five minutes of all scrapes, for 128 workloads of a source.
type Options struct {
	Window time.Duration // 5 minutes
	// Interval is the time between two scrapes. For 0 it is derived from the stored samples of an agent.
	Interval  time.Duration
	Workloads int           // limit of the workloads with windows; 128
	Metrics   []Metric      // [Metrics]
	PerQuery  time.Duration // time limit of a query; 10 s
}

const (
	usualWindow     = 5 * time.Minute
	windowWorkloads = 128
	// leastObservations is the least number of values of a box plot, which consists of five numbers.
	leastObservations = 5
	// MaxObservations bounds the values of a box plot. A window of hours is sampled less often.
	MaxObservations = 720
)

func (o Options) withDefaults() Options {
	if o.Window <= 0 {
		o.Window = usualWindow
	}
	if o.Workloads <= 0 {
		o.Workloads = windowWorkloads
	}
	if o.Metrics == nil {
		o.Metrics = Metrics()
	}
	if o.PerQuery <= 0 {
		o.PerQuery = 10 * time.Second
	}
	return o
}

// A Stat is the box plot of one metric of one workload in one window.
type Stat struct {
	Metric   Metric
	Workload string // "" is the machine
	Instance string
	At       time.Time // end of the window
	Window   time.Duration
	Expected int // observations of a window without gaps; Box.N is the actual number
	Box      stat.Box
	Median   stat.Interval // at 95 %
}

// Compute makes the box plots of the window that ends at a moment. An observation is the rate between two consecutive
// scrapes, so observations do not overlap. A metric with fewer than five observations has no box plot. The result is
// sorted by metric, instance and workload. A failed query is a problem, and after two failures in a row no further
// query is run.
func Compute(ctx context.Context, source query.Source, at time.Time, options Options) ([]Stat, []query.Problem) {
	o := options.withDefaults()
	q := query.NewAsker(ctx, source, o.PerQuery)
	if o.Interval <= 0 {
		if o.Interval = Interval(q, at, o.Window); o.Interval <= 0 {
			return nil, q.Problems
		}
	}
	o.Interval = max(o.Interval, o.Window/MaxObservations)
	if o.Window/o.Interval < leastObservations {
		q.Note(query.Problem{Kind: query.Absent, Error: fmt.Sprintf("a window of %s has fewer than %d scrapes, one every %s: use a longer window",
			query.Duration(o.Window), leastObservations, query.Duration(o.Interval))})
		return nil, q.Problems
	}
	start := at.Add(-o.Window + o.Interval)
	var stats []Stat
	for _, m := range Existing(ctx, source, o.Metrics, o.PerQuery) {
		for _, s := range q.Range(m.each(query.Duration(o.Interval*5/2)), start, at, o.Interval) {
			p := query.TargetOf(s.Labels)
			if p.Workload == "idle" || m.Machine != (p.Workload == "") {
				continue
			}
			x := query.Values(s.Points)
			box := stat.BoxOf(x)
			if box.N < leastObservations {
				continue
			}
			stats = append(stats, Stat{
				Metric: m, Workload: p.Workload, Instance: p.Instance, At: at, Window: o.Window,
				Expected: int(o.Window / o.Interval), Box: box, Median: stat.SerialMedianInterval(x, 0.95),
			})
		}
	}
	return bounded(stats, o.Workloads, q)
}

// Existing returns the metrics that the source may have. Queries about the others have no samples.
func Existing(ctx context.Context, source query.Source, metrics []Metric, within time.Duration) []Metric {
	of, is := source.(query.Namer)
	if !is {
		return metrics
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	names, err := of.Metrics(ctx, "")
	if err != nil || len(names) == 0 {
		return metrics
	}
	return slices.DeleteFunc(slices.Clone(metrics), func(m Metric) bool {
		family, _, _ := strings.Cut(m.Selector, "{")
		return !slices.Contains(names, family)
	})
}

// bounded keeps the most important workloads.
func bounded(stats []Stat, most int, q *query.Asker) ([]Stat, []query.Problem) {
	if targets := important(stats); len(targets) > most {
		gone := setOf(targets[most:])
		stats = slices.DeleteFunc(stats, func(s Stat) bool { return gone[s.target()] })
		q.Note(query.Problem{Kind: query.Bounded, Error: fmt.Sprintf(
			"%d workloads: only %d have windows, those with enclaves and with the most processor time", len(targets), most)})
	}
	slices.SortStableFunc(stats, compare)
	return stats, q.Problems
}

func (s Stat) target() query.Target {
	return query.Target{Workload: s.Workload, Instance: s.Instance}
}

func setOf(targets []query.Target) map[query.Target]bool {
	set := make(map[query.Target]bool, len(targets))
	for _, t := range targets {
		set[t] = true
	}
	return set
}

// important returns the workloads, the most important ones first: those with enclaves, then those with the most processor time.
func important(stats []Stat) []query.Target {
	weight := make(map[query.Target]float64)
	for _, s := range stats {
		p := s.target()
		switch {
		case strings.HasPrefix(s.Metric.Name, "sgx_"), strings.HasPrefix(s.Metric.Name, "teescope_enclave_"):
			weight[p] += 1e9
		case s.Metric.Name == "teescope_cpu_seconds":
			weight[p] += s.Box.Median
		default:
			weight[p] += 0
		}
	}
	var targets []query.Target
	for p := range weight {
		if p.Workload != "" {
			targets = append(targets, p)
		}
	}
	slices.SortFunc(targets, func(a, b query.Target) int {
		return cmp.Or(cmp.Compare(weight[b], weight[a]), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Instance, b.Instance))
	})
	return targets
}

func compare(a, b Stat) int {
	return cmp.Or(cmp.Compare(a.Metric.Name, b.Metric.Name), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Workload, b.Workload))
}

// ComputeEach makes the box plots of several sources, each of one machine. The limit of workloads holds for each.
func ComputeEach(ctx context.Context, sources []query.Source, at time.Time, options Options) (stats []Stat, problems []query.Problem) {
	for _, source := range sources {
		its, wrong := Compute(ctx, source, at, options)
		stats, problems = append(stats, its...), append(problems, wrong...)
	}
	slices.SortStableFunc(stats, compare)
	return stats, problems
}

// Interval returns the interval of stored samples, rounded to a usual interval. It is 0 if there are too few.
func Interval(q *query.Asker, at time.Time, window time.Duration) time.Duration {
	// A file need not have metrics of the agent itself.
	expr := strings.ReplaceAll("max(count_over_time(teescope_build_info[$w])) or max(count_over_time(teescope_processes[$w]))", "$w", query.Duration(window))
	found := q.Instant(expr, at)
	if len(found) == 0 || !(found[0].Value >= leastObservations) {
		if len(q.Problems) == 0 {
			q.Note(query.Problem{Kind: query.Absent, Query: expr, Error: fmt.Sprintf(
				"fewer than %d scrapes of a teescope agent within %s: wait, or use a longer window", leastObservations, query.Duration(window))})
		}
		return 0
	}
	// An agent is scraped more often in its first seconds, so the exact interval can be a little short.
	exact := window.Seconds() / found[0].Value
	best := 0.0
	for _, usual := range []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300} {
		if math.Abs(math.Log(usual/exact)) < math.Abs(math.Log(best/exact)) {
			best = usual
		}
	}
	return time.Duration(best * float64(time.Second))
}
