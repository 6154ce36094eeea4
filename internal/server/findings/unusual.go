// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/anomaly"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/window"
)

// unusualEvery is the minimum time between two searches for anomalies. A search queries half an hour of series, and
// anomalies last longer than a minute.
const unusualEvery = 5 * time.Minute

// unusual holds the anomalies of the newest search.
type unusual struct {
	at    time.Time
	found []analysis.Finding
}

// look searches again when the time has come. A failed query leaves the anomalies as they are.
func (u *unusual) look(ctx context.Context, o Options, at time.Time, windows []window.Stat) []query.Problem {
	if since := at.Sub(u.at); since >= 0 && since < unusualEvery {
		return nil
	}
	found, problems := anomaly.Find(ctx, o.Source, at, windows, anomaly.Options{})
	failed := func(p query.Problem) bool { return p.Kind == query.Failed }
	if !slices.ContainsFunc(problems, failed) {
		u.at, u.found = at, anomaly.Findings(found, at, 0)
	}
	return problems
}
