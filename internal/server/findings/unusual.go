// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"context"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis"
)

// unusualEvery is the least time between two looks at what is unlike before: they ask for half an hour of series, and
// what they look for does not come and go within a minute.
const unusualEvery = 5 * time.Minute

// unusual is what is unlike before, by the newest look.
type unusual struct {
	at    time.Time
	found []analysis.Finding
}

// look looks again when it is time to. What could not be asked changes nothing.
func (u *unusual) look(ctx context.Context, o Options, at time.Time, windows []analysis.WindowStat) []analysis.Problem {
	if since := at.Sub(u.at); since >= 0 && since < unusualEvery {
		return nil
	}
	found, problems := analysis.Anomalies(ctx, o.Source, at, windows, analysis.AnomalyOptions{})
	failed := func(p analysis.Problem) bool { return p.Kind == analysis.Failed }
	if !slices.ContainsFunc(problems, failed) {
		u.at, u.found = at, analysis.AnomalyFindings(found, at, 0)
	}
	return problems
}
