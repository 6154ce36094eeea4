// SPDX-License-Identifier: Apache-2.0

// Package clock has the time since the machine's start, detects that the machine's clock was set, and waits for a time or the
// end of a context.
//
// For the current time, use package time.
package clock

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// smallest is the smallest change that counts as a step. A time daemon adjusts the clock by at most 500 millionths
// (adjtimex(2)). Reading two clocks one after the other takes time too, and on a busy machine it can take long.
const smallest = 500 * time.Millisecond

// Watch detects steps of the clock between two calls of [Watch.Step].
type Watch struct {
	offset func() time.Duration
	was    time.Duration
}

// New returns a Watch that begins now.
func New() *Watch {
	w := &Watch{offset: offset}
	w.was = w.offset()
	return w
}

// Step returns by how much the clock was set since the previous call. It is negative when the clock was set back, and 0
// when it was not set.
func (w *Watch) Step() time.Duration {
	is := w.offset()
	step := is - w.was
	w.was = is
	if step.Abs() < smallest {
		return 0
	}
	return step
}

// offset returns how far the clock is ahead of the time since the machine's start. That time also advances while the
// machine is suspended (clock_gettime(2)), so the offset changes only when the clock is set.
func offset() time.Duration { return time.Duration(time.Now().UnixNano()) - SinceBoot() }

// SinceBoot returns the time since the machine's start, with that in suspend, as the kernel counts the start times of processes.
func SinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) // fails only if the arguments are wrong
	return time.Duration(t.Nano())
}

// Sleep waits for d or the end of the context, whose error it returns.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
