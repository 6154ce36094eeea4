// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestStep(t *testing.T) {
	var now time.Duration
	w := &Watch{offset: func() time.Duration { return now }}
	for _, tt := range []struct{ set, want time.Duration }{
		{0, 0},
		{time.Hour, time.Hour},
		{0, 0},
		{-2 * time.Hour, -2 * time.Hour},
		{400 * time.Millisecond, 0}, // slewed
		{400 * time.Millisecond, 0}, // and again: both do not add up to a step
		{-400 * time.Millisecond, 0},
		{-time.Second, -time.Second},
	} {
		now += tt.set
		if got := w.Step(); got != tt.want {
			t.Errorf("after %v: Step() = %v, want %v", tt.set, got, tt.want)
		}
	}
}

// TestNobodySetsTheClock uses the real clocks, which a test must not set.
func TestNobodySetsTheClock(t *testing.T) {
	w := New()
	if w.was < 0 {
		t.Fatalf("the machine started %v after now", -w.was)
	}
	time.Sleep(20 * time.Millisecond)
	if got := w.Step(); got != 0 {
		t.Errorf("Step() = %v", got)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	if err := Sleep(t.Context(), time.Nanosecond); err != nil {
		t.Error(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := Sleep(ended, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("Sleep() = %v, want the error of the context", err)
	}
}
