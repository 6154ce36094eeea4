// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"time"
)

// Every calls work now and then once each interval, until ctx ends. If work takes longer than the interval, it is called
// again at once, and calls that it has missed are omitted.
func Every(ctx context.Context, interval time.Duration, work func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for again := true; again; again = wait(ctx, tick) {
		work()
	}
}

// After is [Every] without the call now: the first one is after an interval. Work that compares the present with its last call needs
// that.
func After(ctx context.Context, interval time.Duration, work func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for wait(ctx, tick) {
		work()
	}
}

// wait waits for a tick. It returns false when ctx has ended.
func wait(ctx context.Context, tick *time.Ticker) bool {
	select {
	case <-ctx.Done():
		return false
	case <-tick.C:
		return ctx.Err() == nil
	}
}
