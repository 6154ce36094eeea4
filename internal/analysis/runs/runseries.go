// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/stat"
)

// A SeriesTable defines runs by series: a run is the time in which an info metric has the same labels.
type SeriesTable struct {
	Info     string            // query of the info metric: its labels are the settings
	Outcomes map[string]string // queries by the name of the outcome; each is joined by the labels in On
	On       []string          // labels that identify the owner of the settings; instance and workload
	Start    time.Time
	End      time.Time
	Step     time.Duration
}

// leastSteps is the least number of steps of a run. A median of fewer is meaningless.
const leastSteps = 3

// notSettings are labels of the scrape.
var notSettings = []string{"__name__", "job", "instance", "workload"}

// FromSeries makes a table of runs. The outcome of a run is the median of its query's points in that time. A failed
// query is a problem.
func FromSeries(ctx context.Context, source query.Source, t SeriesTable) ([]Run, []query.Problem) {
	q := query.NewAsker(ctx, source, 30*time.Second)
	if len(t.On) == 0 {
		t.On = []string{"instance", "workload"}
	}
	owner := func(labels map[string]string) string {
		text := ""
		for _, name := range t.On {
			text += labels[name] + "\x00"
		}
		return text
	}
	outcomes := make(map[string]map[string][]query.Point) // by name and owner
	for _, name := range slices.Sorted(maps.Keys(t.Outcomes)) {
		outcomes[name] = make(map[string][]query.Point)
		for _, s := range q.Range(t.Outcomes[name], t.Start, t.End, t.Step) {
			outcomes[name][owner(s.Labels)] = s.Points
		}
	}
	var runs []Run
	for _, s := range q.Range(t.Info, t.Start, t.End, t.Step) {
		settings := maps.Clone(s.Labels)
		for _, name := range append(notSettings, t.On...) {
			delete(settings, name)
		}
		for _, part := range query.Stretches(s.Points, t.Step) {
			if len(part) < leastSteps || len(runs) >= Max {
				continue
			}
			run := Run{Settings: settings, Outcomes: make(map[string]float64)}
			for name, by := range outcomes {
				var x []float64
				for _, p := range by[owner(s.Labels)] {
					if !p.Time.Before(part[0].Time) && !p.Time.After(part[len(part)-1].Time) {
						x = append(x, p.Value)
					}
				}
				if len(x) >= leastSteps {
					run.Outcomes[name] = stat.Median(x)
				}
			}
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 && len(q.Problems) == 0 {
		q.Note(query.Problem{Kind: query.Absent, Query: t.Info, Error: fmt.Sprintf("no labels stayed the same for %d steps of %s", leastSteps, query.Duration(t.Step))})
	}
	return runs, q.Problems
}
