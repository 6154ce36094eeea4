// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/anomaly"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/window"
)

// unusualEvery is the minimum time between two searches for anomalies. A search queries half an hour of series, and
// anomalies last longer than a minute.
const unusualEvery = 5 * time.Minute

// perQuery is the time limit of a query for earlier medians.
const perQuery = 10 * time.Second

// unusual holds the anomalies of the newest search of each machine, by its name.
type unusual map[string]search

type search struct {
	at    time.Time
	found []analysis.Finding
}

// due reports whether a machine must be searched again.
func (u unusual) due(m engine.Machine, at time.Time) bool {
	last, searched := u[m.Name]
	return !searched || at.Before(last.at) || at.Sub(last.at) >= unusualEvery
}

// look searches a machine for anomalies at most every unusualEvery. With an appender, it also carries the medians of
// earlier weeks forward. If a query fails, the anomalies of the previous search stay.
func (u unusual) look(ctx context.Context, m engine.Machine, keep window.Appender, at time.Time, windows []window.Stat) []query.Problem {
	if !u.due(m, at) {
		return nil
	}
	found, problems := anomaly.Find(ctx, m.Source, at, windows, anomaly.Options{})
	if keep != nil && len(windows) > 0 {
		q := query.NewAsker(ctx, m.Source, perQuery)
		if err := window.CarryWeeks(ctx, q, keep, at, windows[0].Window, window.Metrics()); err != nil {
			q.Note(query.Problem{Kind: query.Failed, Error: err.Error()})
		}
		problems = append(problems, q.Problems...)
	}
	failed := func(p query.Problem) bool { return p.Kind == query.Failed }
	if !slices.ContainsFunc(problems, failed) {
		u[m.Name] = search{at, anomaly.Findings(found, at, 0)}
	}
	return problems
}

// found returns the anomalies of all machines.
func (u unusual) found() (all []analysis.Finding) {
	for _, name := range slices.Sorted(maps.Keys(u)) {
		all = append(all, u[name].found...)
	}
	return all
}
