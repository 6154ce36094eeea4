// SPDX-License-Identifier: Apache-2.0

package sampling

// CPUTime is the CPU time of a group in nanoseconds.
type CPUTime struct {
	total         uint64  // since the group was created, as of the last observation
	cycle, window float64 // in this cycle, and in its window
}

// observe takes the CPU time since the group was created. It may be less than before, if a thread was switched out
// between the snapshot and the sum.
func (t *CPUTime) observe(total uint64, open bool) {
	if total <= t.total {
		return
	}
	passed := float64(total - t.total)
	t.total = total
	t.cycle += passed
	if open {
		t.window += passed
	}
}

func (t *CPUTime) restart() { t.cycle, t.window = 0, 0 }

// without subtracts the cost of counting, which arises in the window. It subtracts at most three quarters of the
// window, so that a wrong cost cannot make the window empty.
func (t CPUTime) without(spent float64) CPUTime {
	spent = min(spent, t.window*3/4)
	return CPUTime{cycle: t.cycle - spent, window: t.window - spent}
}
