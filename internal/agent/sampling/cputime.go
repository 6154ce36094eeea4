// SPDX-License-Identifier: Apache-2.0

package sampling

// CPUTime is how long a group has run, in nanoseconds.
type CPUTime struct {
	total         uint64  // since it was made, when it was last observed
	cycle, window float64 // in this cycle, and in the window of it
}

// observe takes the time since the group was made. It may be less than before: a thread was switched out between the
// snapshot and the sum.
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

// without subtracts what counting has cost the group, all of it in the window. It subtracts three quarters of the window at
// most, so that a wrong cost does not make it nothing.
func (t CPUTime) without(spent float64) CPUTime {
	spent = min(spent, t.window*3/4)
	return CPUTime{cycle: t.cycle - spent, window: t.window - spent}
}
