// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/stat"
)

// A SeriesTable defines runs by series: a run is the time in which the settings of an owner, such as a workload, stay the
// same. The settings are the labels of Info, or else the pairs of the labels setting and value in Pairs.
type SeriesTable struct {
	Info string // query of an info metric whose labels are the settings
	// Pairs is the query of a metric with a series for each setting, and Known that of a metric which every owner has
	// whose settings are known, also if there are none.
	Pairs, Known string
	Outcomes     map[string]string // queries by the name of the outcome; each is joined by the labels in On
	On           []string          // labels that identify the owner of the settings; instance and workload
	Workload     string            // if given, series of other workloads are omitted
	Start        time.Time
	End          time.Time
	Step         time.Duration
}

const (
	// leastSteps is the least number of steps of a run. A median of fewer is meaningless.
	leastSteps = 3
	// unset is the value of a setting that an owner does not have and another one has.
	unset = "unset"
)

// notSettings are labels of the scrape.
var notSettings = []string{"__name__", "job", "instance", "workload"}

// period is a time in which the settings of an owner were the same.
type period struct {
	owner    string
	from, to time.Time // of the first and the last step
	settings map[string]string
}

// FromSeries makes a table of runs. The outcome of a run is the median of its query's points in that time. A failed
// query is a problem.
func FromSeries(ctx context.Context, source query.Source, t SeriesTable) ([]Run, []query.Problem) {
	q := query.NewAsker(ctx, source, 30*time.Second)
	if len(t.On) == 0 {
		t.On = []string{"instance", "workload"}
	}
	outcomes := make(map[string]map[string][]query.Point) // by name and owner
	for _, name := range slices.Sorted(maps.Keys(t.Outcomes)) {
		outcomes[name] = t.outcome(q, t.Outcomes[name])
	}
	periods, asked := t.ofLabels, t.Info
	if t.Info == "" {
		periods, asked = t.ofPairs, t.Known
	}
	var runs []Run
	for _, p := range periods(q) {
		if len(runs) == maxRuns {
			break
		}
		if p.to.Sub(p.from) < (leastSteps-1)*t.Step {
			continue
		}
		run := Run{Settings: p.settings, Outcomes: make(map[string]float64), Owner: p.owner}
		for name, by := range outcomes {
			var x []float64
			for _, at := range by[p.owner] {
				if !at.Time.Before(p.from) && !at.Time.After(p.to) {
					x = append(x, at.Value)
				}
			}
			if len(x) >= leastSteps {
				run.Outcomes[name] = stat.Median(x)
			}
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 && len(q.Problems) == 0 {
		q.Note(query.Problem{Kind: query.Absent, Query: asked, Error: fmt.Sprintf("no settings stayed the same for %d steps of %s", leastSteps, query.Duration(t.Step))})
	}
	return runs, q.Problems
}

// outcome returns the points of an outcome by owner. An owner with several series has no outcome, because it is not
// known which of them is meant.
func (t *SeriesTable) outcome(q *query.Asker, expr string) map[string][]query.Point {
	by, several := make(map[string][]query.Point), false
	for _, s := range t.ask(q, expr) {
		owner := t.owner(s.Labels)
		if _, twice := by[owner]; twice {
			by[owner] = nil
			several = true
			continue
		}
		by[owner] = s.Points
	}
	if several {
		q.Note(query.Problem{Kind: query.Bounded, Query: expr, Error: fmt.Sprintf("left out where it has several series: use sum by (%s) or another aggregation", strings.Join(t.On, ", "))})
	}
	return by
}

// ask runs a query and omits the series of other workloads.
func (t *SeriesTable) ask(q *query.Asker, expr string) []query.Series {
	return slices.DeleteFunc(q.Range(expr, t.Start, t.End, t.Step), func(s query.Series) bool {
		return t.Workload != "" && s.Labels["workload"] != t.Workload
	})
}

func (t *SeriesTable) owner(labels map[string]string) string {
	key := ""
	for _, name := range t.On {
		key += labels[name] + "\x00"
	}
	return key
}

// ofLabels returns the periods of an info metric whose labels are the settings. An owner may have several series at a time,
// such as those of two processes on a machine.
func (t *SeriesTable) ofLabels(q *query.Asker) (all []period) {
	pairs := make(map[string][]period)
	steps := make(map[string][]query.Point) // of an owner, at which it has a series
	names := make(map[string]bool)
	var owners []string
	for _, s := range t.ask(q, t.Info) {
		settings := maps.Clone(s.Labels)
		for _, name := range slices.Concat(notSettings, t.On) {
			delete(settings, name)
		}
		for name := range settings {
			names[name] = true
		}
		owner := t.owner(s.Labels)
		if steps[owner] == nil {
			owners = append(owners, owner)
		}
		steps[owner] = append(steps[owner], s.Points...)
		for _, part := range query.Stretches(s.Points, t.Step) {
			pairs[owner] = append(pairs[owner], period{owner, part[0].Time, part[len(part)-1].Time, settings})
		}
	}
	names = t.bounded(q, t.Info, names)
	for _, owner := range owners {
		at := steps[owner]
		slices.SortFunc(at, func(a, b query.Point) int { return a.Time.Compare(b.Time) })
		at = slices.CompactFunc(at, func(a, b query.Point) bool { return a.Time.Equal(b.Time) })
		for _, part := range query.Stretches(at, t.Step) {
			all = append(all, divide(owner, part, pairs[owner], names)...)
		}
	}
	return all
}

// ofPairs returns the periods of a metric with a series for each setting.
func (t *SeriesTable) ofPairs(q *query.Asker) (all []period) {
	pairs := make(map[string][]period) // each with one setting
	names := make(map[string]bool)
	for _, s := range q.Range(t.Pairs, t.Start, t.End, t.Step) {
		owner, name := t.owner(s.Labels), s.Labels["setting"]
		names[name] = true
		for _, part := range query.Stretches(s.Points, t.Step) {
			pairs[owner] = append(pairs[owner], period{owner, part[0].Time, part[len(part)-1].Time, map[string]string{name: s.Labels["value"]}})
		}
	}
	names = t.bounded(q, t.Pairs, names)
	for _, s := range q.Range(t.Known, t.Start, t.End, t.Step) {
		owner := t.owner(s.Labels)
		for _, part := range query.Stretches(s.Points, t.Step) {
			all = append(all, divide(owner, part, pairs[owner], names)...)
		}
	}
	return all
}

// bounded returns as many names of settings as a table may have, the first in alphabetical order. Programs and agents choose
// them, and each pair of settings is compared over all runs.
func (t *SeriesTable) bounded(q *query.Asker, expr string, names map[string]bool) map[string]bool {
	if len(names) <= maxColumns {
		return names
	}
	q.Note(query.Problem{Kind: query.Bounded, Query: expr, Error: fmt.Sprintf("%d different settings: only the first %d by name are used", len(names), maxColumns)})
	kept := make(map[string]bool, maxColumns)
	for _, name := range slices.Sorted(maps.Keys(names))[:maxColumns] {
		kept[name] = true
	}
	return kept
}

// divide divides the steps of an owner where one of its settings begins or ends. A setting with several values, such as
// those of two containers, is omitted.
func divide(owner string, steps []query.Point, pairs []period, names map[string]bool) (all []period) {
	var before map[string]string
	for _, step := range steps {
		now := make(map[string]string, len(names))
		for name := range names {
			now[name] = unset
		}
		for _, p := range pairs {
			if step.Time.Before(p.from) || step.Time.After(p.to) {
				continue
			}
			for name, value := range p.settings {
				if was, ok := now[name]; ok && (was == unset || was == value) {
					now[name] = value
				} else {
					delete(now, name)
				}
			}
		}
		if n := len(all); n > 0 && maps.Equal(now, before) {
			all[n-1].to = step.Time
		} else {
			all = append(all, period{owner, step.Time, step.Time, now})
		}
		before = now
	}
	return all
}
