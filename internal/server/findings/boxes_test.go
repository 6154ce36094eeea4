// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/window"
)

// Box plots are stored when half of a window is over, and again after a query that failed.
func TestBoxPlotsOfHalfWindows(t *testing.T) {
	m, noon, some := engine.Machine{Name: "a"}, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), make([]window.Stat, 1)
	failure := []query.Problem{{Kind: query.Failed}}
	for _, tt := range []struct {
		what     string
		windows  []window.Stat
		problems []query.Problem
		after    time.Duration
		span     time.Duration
		want     bool
	}{
		{"a minute later", some, nil, time.Minute, 5 * time.Minute, false},
		{"half a window later", some, nil, 150 * time.Second, 5 * time.Minute, true},
		{"a window of an hour, within the time for which a query finds a sample", some, nil, 150 * time.Second, time.Hour, true},
		{"a window of a minute", some, nil, 30 * time.Second, time.Minute, true},
		{"the clock was set back", some, nil, -time.Minute, 5 * time.Minute, true},
		{"no box plots", nil, nil, time.Minute, 5 * time.Minute, true},
		{"a query failed", some, failure, time.Minute, 5 * time.Minute, true},
		{"something is absent", some, []query.Problem{{Kind: query.Absent}}, time.Minute, 5 * time.Minute, false},
	} {
		b := boxes{}
		if !b.due(m, noon, tt.span) {
			t.Errorf("%s: the first ones are not due", tt.what)
		}
		b.made(m, noon, tt.windows, tt.problems)
		if got := b.due(m, noon.Add(tt.after), tt.span); got != tt.want {
			t.Errorf("%s: due %v", tt.what, got)
		}
	}
	b := boxes{"a": {}, "gone": {}}
	if keepOnly(b, []engine.Machine{m}); len(b) != 1 {
		t.Errorf("kept %v", b)
	}
}
