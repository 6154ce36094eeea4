// SPDX-License-Identifier: Apache-2.0

package system

import (
	"time"

	"github.com/teescope/teescope/internal/agent/sampling"
)

const (
	// incomplete is the level at which each event should be counted, and the kernel did not run programs for some.
	incomplete = "incomplete"
	// missedFor is how long the level is incomplete after the last missed run, so that each scrape of a Prometheus sees it.
	missedFor = time.Minute
)

// misses remembers when the kernel last missed a run of a program.
type misses struct {
	total uint64
	last  time.Time // when the total was last seen to grow; zero before
}

// update takes the number of missed runs since the start, and reports whether counts of the last minute are incomplete.
func (m *misses) update(total uint64, now time.Time) bool {
	if total > m.total {
		m.last = now
	}
	m.total = total
	return !m.last.IsZero() && now.Sub(m.last) < missedFor
}

// levelShown returns the value of the label level. The counts of the other levels are estimates or absent anyway, and have a name
// that says so.
func levelShown(l sampling.Level, missed bool) string {
	if missed && (l == sampling.Full || l == sampling.Untimed) {
		return incomplete
	}
	return l.String()
}

// levelsShown lists all values of the label level.
func levelsShown() (names []string) {
	for l := range sampling.Levels {
		names = append(names, l.String())
	}
	return append(names, incomplete)
}
