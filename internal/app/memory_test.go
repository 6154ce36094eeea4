// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// Only memory that stays in use for a period counts, until it is given back.
func TestTheKeptHeap(t *testing.T) {
	start := time.Unix(1000, 0)
	var k keptHeap
	for _, tt := range []struct {
		at         time.Duration
		live, want int64
	}{
		{0, 100, 0},
		{heapPeriod / 2, 900, 0},
		{heapPeriod, 110, 100},
		{heapPeriod + 1, 900, 100}, // for a moment
		{2 * heapPeriod, 500, 110}, // from here on
		{2*heapPeriod + 1, 900, 110},
		{3 * heapPeriod, 510, 500},
		{4 * heapPeriod, 520, 510},
		{4*heapPeriod + 1, 90, 90},
	} {
		if got := k.add(tt.live, start.Add(tt.at)); got != tt.want {
			t.Errorf("%d in use after %v: %d stay, want %d", tt.live, tt.at, got, tt.want)
		}
	}
}

// The soft limit is raised above a heap that stays, so that the collector does not run all the time, and goes down with it.
func TestTheSoftLimitFollowsTheHeap(t *testing.T) {
	const least, held = 16 << 20, 64 << 20
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	debug.SetMemoryLimit(least)
	long := time.Now().Add(-heapPeriod)
	followHeap(least, &keptHeap{before: held, now: held, began: long}) // it has stayed for a period
	until := func(what string, ok func(limit int64) bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(debug.SetMemoryLimit(-1)); time.Sleep(time.Millisecond) {
			if runtime.GC(); time.Now().After(end) {
				t.Fatalf("the limit is %d, want %s", debug.SetMemoryLimit(-1), what)
			}
		}
	}
	heap := make([]byte, held)
	until("twice the heap", func(limit int64) bool { return limit >= 2*held })
	runtime.KeepAlive(heap)
	until("less after it", func(limit int64) bool { return limit < 2*held })
}
