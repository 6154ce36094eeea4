// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// TestTheSoftLimitFollowsTheHeap: a heap above the soft limit raises it, so that the collector does not run all the time. It goes
// down with the heap.
func TestTheSoftLimitFollowsTheHeap(t *testing.T) {
	const least, held = 16 << 20, 64 << 20
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	debug.SetMemoryLimit(least)
	followHeap(least)
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
