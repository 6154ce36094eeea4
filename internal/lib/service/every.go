// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"time"
)

// Every calls work now and then once each interval, until ctx ends. If work takes longer than the interval, it is called again
// at once, and calls that it has missed are left out.
func Every(ctx context.Context, interval time.Duration, work func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		work()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if ctx.Err() != nil {
				return
			}
		}
	}
}
