// SPDX-License-Identifier: Apache-2.0

package system

import (
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/sampling"
)

// The level is not full while runs were missed in the last minute. Estimates keep the name of their level.
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
		if got := levelShown(sampling.Sampled, missed); got != "sampled" {
			t.Errorf("the level of estimates is %s", got)
		}
	}
}

// Runs that were missed before the first scrape count.
func TestRunsThatWereMissedBeforeTheFirstScrapeCount(t *testing.T) {
	if m := (misses{}); !m.update(1, time.Unix(1000, 0)) {
		t.Error("counts are complete after a missed run")
	}
}
