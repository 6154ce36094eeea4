// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"maps"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/window"
)

// boxes is when the newest box plots of each machine were stored, by its name.
type boxes map[string]stored

type stored struct {
	at       time.Time
	problems []query.Problem
}

// keepOnly removes all machines except these.
func keepOnly[V any](byName map[string]V, machines []engine.Machine) {
	maps.DeleteFunc(byName, func(name string, _ V) bool {
		return !slices.ContainsFunc(machines, func(m engine.Machine) bool { return m.Name == name })
	})
}

// due reports whether the box plots of a machine must be stored again. Windows that overlap by half miss nothing that is longer
// than a half, and a query finds a sample of the last five minutes.
func (b boxes) due(m engine.Machine, at time.Time, span time.Duration) bool {
	last, made := b[m.Name]
	return !made || at.Before(last.at) || at.Sub(last.at) >= min(span, 5*time.Minute)/2
}

// made records box plots. Without any, and after a query that failed, they are due again.
func (b boxes) made(m engine.Machine, at time.Time, windows []window.Stat, problems []query.Problem) {
	delete(b, m.Name)
	if len(windows) > 0 && !slices.ContainsFunc(problems, func(p query.Problem) bool { return p.Kind == query.Failed }) {
		b[m.Name] = stored{at, problems}
	}
}
