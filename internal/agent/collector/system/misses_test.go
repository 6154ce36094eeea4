// SPDX-License-Identifier: Apache-2.0

package system

import (
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/sampling"
)

// The level is neither full nor untimed while runs were missed in the last minute. Estimates keep the name of their level.
func TestMissedRunsChangeTheLevel(t *testing.T) {
	start := time.Unix(1000, 0)
	var m misses
	for _, tt := range []struct {
		at    time.Duration
		total uint64
		want  string
	}{
		{0, 0, "full"},
		{15 * time.Second, 3, "incomplete"},
		{30 * time.Second, 3, "incomplete"},
		{74 * time.Second, 3, "incomplete"},
		{75 * time.Second, 3, "full"},
		{90 * time.Second, 4, "incomplete"},
	} {
		missed := m.update(tt.total, start.Add(tt.at))
		if got := levelShown(sampling.Full, missed); got != tt.want {
			t.Errorf("after %v with %d missed runs the level is %s, want %s", tt.at, tt.total, got, tt.want)
		}
		untimed := map[string]string{"full": "untimed", "incomplete": "incomplete"}[tt.want]
		for level, want := range map[sampling.Level]string{sampling.Untimed: untimed, sampling.Sampled: "sampled", sampling.SampledSums: "totals", sampling.Off: "off"} {
			if got := levelShown(level, missed); got != want {
				t.Errorf("after %v with %d missed runs the level %s is shown as %s, want %s", tt.at, tt.total, level, got, want)
			}
		}
	}
}

// Runs that were missed before the first scrape count.
func TestRunsThatWereMissedBeforeTheFirstScrapeCount(t *testing.T) {
	if m := (misses{}); !m.update(1, time.Unix(1000, 0)) {
		t.Error("counts are complete after a missed run")
	}
}
