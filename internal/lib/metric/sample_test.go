// SPDX-License-Identifier: Apache-2.0

package metric

import (
	"testing"
	"time"
)

// A start that is too late makes a rate too high. So after a change of the clock the earlier of two times counts.
func TestStarted(t *testing.T) {
	d := New(Desc{Name: "a_total", Kind: Counter, Help: "A."})
	now := time.Now()
	began := now.Add(-time.Minute)
	start := func(now time.Time) time.Duration {
		return Started(d.Since(began, 1).(*Sample).Began, now).Sub(began.Round(0))
	}
	if got := start(now); got != 0 {
		t.Errorf("the start is %v off", got)
	}
	// Round removes the monotonic time, which is how a clock that jumped looks from here.
	if got := start(now.Add(time.Hour).Round(0)); got != 0 {
		t.Errorf("with the clock ahead the start is %v off", got)
	}
	if s := New(Desc{Name: "a", Kind: Gauge, Help: "A."}).Since(began, 1).(*Sample); !s.Began.IsZero() {
		t.Error("a gauge has a start")
	}
}
