// SPDX-License-Identifier: Apache-2.0

package system

import "math"

// A window alone is not fair. Who opens it needs a CPU, and gets one later while others want them all, so windows fall
// where they do not; and a program that the processor limits makes fewer events while each costs it more. But how long
// each group has run is known exactly, in the window and outside of it. So a cycle's events are those of the window
// scaled up, and what the window had too little of the CPU time, by the events that the group is used to make in such a
// time while it is not watched (a difference estimator: Cochran, Sampling Techniques, 7.9). Whatever that habit, the
// estimate is right on average where windows are fair; where they are not, it is right as far as the habit is.

// watchingCosts is what one event of each kind costs the group that it happens to, in nanoseconds, the program and the
// kernel's way to it. A call: 115 in a loop of getppid, 130 to 200 in servers (docs/decisions/overhead.md); what is
// doubted of the estimate is more than the difference makes.
func watchingCosts() [sampledKinds]float64 { return [sampledKinds]float64{120, 50, 40} }

// ran is for how long a group has run, in nanoseconds of CPU time.
type ran struct {
	at            uint64  // by the kernel side's counters
	cycle, window float64 // in this cycle, and in the windows of it
}

// without takes off what watching has cost the group, all of it in the windows. Watching takes a part of a
// program's time: no more than three quarters, so that a cost that is wrong does not make it nothing.
func (r ran) without(spent float64) ran {
	spent = min(spent, r.window*3/4)
	return ran{cycle: r.cycle - spent, window: r.window - spent}
}

const (
	// forgetting is what is left of an experience after a cycle: a habit is that of twenty seconds or so.
	forgetting = 0.95
	// leastWork is the CPU time, in nanoseconds, that a habit is to be known from.
	leastWork = 5e6
	// remembering is for what windows miss, which is known from many only.
	remembering = 0.98
	// doubted is the standard error, as a share, of the events that were added because windows go on missing them:
	// what a call costs is another in each program, and the CPU time that is missed may be of another kind than that
	// which is seen. It is wrong in the same direction each time, so errors add
	// up and not their squares: over so many cycles.
	doubted, doubtFor = 0.25, 60
)

// habits are how many events a group makes in how much CPU time.
type habits struct {
	known          [rowWords]float32 // events that were counted in windows
	work           float64           // CPU time in them without that of watching
	missed, cycles float64           // CPU time that windows had too little of, and in how many cycles
	owed           [rowWords]float32 // below zero: what was reported too much, because no counter goes back
}

// habit is how many events come in a nanosecond of CPU time.
func (h *habits) habit(word int) float64 {
	if h.work < leastWork {
		return 0
	}
	return float64(h.known[word]) / h.work
}

// meet takes the events of a cycle. What was last made minutes ago is forgotten.
func (h *habits) meet(word int, events float64) {
	const least = 1e-3
	if h.known[word] = h.known[word]*forgetting + float32(events); h.known[word] < least {
		h.known[word] = 0
	}
}

// learn takes the CPU time of a cycle. Its events are known already.
func (h *habits) learn(t ran, weight, missed float64) {
	h.work = h.work*forgetting + weight*t.window
	h.missed = h.missed*remembering + missed
	h.cycles = h.cycles*remembering + 1
}

// doubt is the standard error of the CPU time that the habit stands in for in each cycle.
func (h *habits) doubt() float64 {
	if h.cycles == 0 {
		return 0
	}
	return doubted * math.Abs(h.missed) / h.cycles
}

// tally adds what each group has run since the last time. The running threads were just looked at.
func (d *duty) tally() {
	for n := range d.ran {
		if n >= slotFirst && d.kernel.groups[n].Ready == 0 {
			continue
		}
		r, now := &d.ran[n], d.kernel.ranNS(uint32(n))
		if now <= r.at { // a thread was switched out between the two looks at it
			continue
		}
		passed := float64(now - r.at)
		r.at = now
		r.cycle += passed
		if d.open {
			r.window += passed
		}
	}
}

// ranNS is how long a slot's threads have run, with those that run now.
func (k *kernelSide) ranNS(slot uint32) (ns uint64) {
	for i := int(slot); i < len(k.rows); i += k.slots {
		ns += k.rows[i].RunNS
	}
	for i := range k.cpus {
		cpu := &k.cpus[i]
		if cpu.Slot == slot && cpu.PID != pidUnknown && cpu.SnapshotSwitches == cpu.Switches && cpu.Inflight.RunNS > cpu.Start.RunNS {
			ns += cpu.Inflight.RunNS - cpu.Start.RunNS
		}
	}
	return ns
}

// snapshotAll looks at the thread that each CPU runs. One that is off line runs none.
func (k *kernelSide) snapshotAll() {
	if k.snapshot == nil {
		return
	}
	for cpu := range k.cpus {
		_ = k.snapshot(cpu)
	}
}
