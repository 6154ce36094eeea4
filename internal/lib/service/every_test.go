// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestEvery(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	Every(ctx, time.Millisecond, func() {
		if n++; n == 3 {
			cancel()
		}
	})
	if n != 3 {
		t.Errorf("%d calls until the end in the third", n)
	}
	n = 0
	ended, cancel := context.WithCancel(t.Context())
	Every(ended, time.Hour, func() { n++; cancel() })
	if n != 1 {
		t.Errorf("%d calls, want one at once", n)
	}
}

// After waits for the interval before the first call, and both keep to the times of their start.
func TestAfter(t *testing.T) {
	for name, tt := range map[string]struct {
		repeat func(context.Context, time.Duration, func())
		first  time.Duration
	}{"Every": {Every, 0}, "After": {After, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 150*time.Second)
			defer cancel()
			began, want := time.Now(), tt.first
			tt.repeat(ctx, time.Minute, func() {
				if got := time.Since(began); got != want {
					t.Errorf("%s calls after %s, want %s", name, got, want)
				}
				want += time.Minute
				time.Sleep(time.Second) // the work
			})
			if took := time.Since(began); want != 3*time.Minute || took != 150*time.Second {
				t.Errorf("%s ended after %s, and would have called again after %s", name, took, want)
			}
		})
	}
}
