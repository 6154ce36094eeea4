// SPDX-License-Identifier: Apache-2.0

// Package clock notices that the machine's clock was set.
//
// It refuses to be a clock: who wants to know the time asks package time.
package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// smallest is the smallest change that counts as a step. What keeps a clock right slews it, by 500
// millionths at most (adjtimex(2)); reading two clocks one after the other takes time too, and on a busy
// machine more of it than one would think.
const smallest = 500 * time.Millisecond

// Watch notices steps of the clock between two calls of [Watch.Step].
type Watch struct {
	offset func() time.Duration
	was    time.Duration
}

// New makes a watch that begins now.
func New() *Watch {
	w := &Watch{offset: offset}
	w.was = w.offset()
	return w
}

// Step returns by how much the clock was set forward, or back when it is negative, since the call before.
// It is 0 when nobody set it.
func (w *Watch) Step() time.Duration {
	is := w.offset()
	step := is - w.was
	w.was = is
	if step.Abs() < smallest {
		return 0
	}
	return step
}

// offset is how far the clock is ahead of the time since the machine's start. That time also goes on while
// the machine is suspended (clock_gettime(2)), so the offset changes only when somebody sets the clock.
func offset() time.Duration {
	var boot unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) // every kernel since 2.6.39 has it
	return time.Duration(time.Now().UnixNano() - boot.Nano())
}
