// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"errors"
	"math/rand/v2"
	"time"
)

// Period is the length of a cycle. It is short against the interval between two scrapes; the window in it, 2 to 100 ms,
// is long against what attaching takes (0.4 ms).
const Period = time.Second

// warmUp is how long the first cycle is, in which everything is counted. At its end what is reported is one cycle late. It
// falls behind slowly: in one cycle, it would stand still.
const warmUp = 3 * Period

// Programs count the events that are sampled.
type Programs interface {
	// Attach attaches them, and Detach detaches them.
	Attach() error
	Detach() error
	// Count says whether the programs that are attached count what they see.
	Count(on bool)
	// Snapshot notes the CPU time of the threads that run at this moment. CPUTimes includes it.
	Snapshot()
	// CPUTimes calls report with the CPU time of each group since it was made, in nanoseconds.
	CPUTimes(report func(group int, ns uint64))
}

// DutyCycle lets programs count in one window of each cycle.
type DutyCycle struct {
	programs Programs
	now      func() time.Time
	phase    func() float64 // of a window in its cycle, in [0, 1)

	ratio  float64 // of the window to the cycle
	active bool
	warmUp bool // this cycle is the warm-up
	began  time.Time
	edges  []edge // of this cycle, those that are still to come
	groups []CPUTime

	open   bool          // events count now
	opened time.Time     // when they began to, or when the last cycle ended
	seen   time.Duration // how long they have counted since the last cycle ended
	ended  time.Time     // when the last cycle ended
}

// NewDutyCycle makes a duty cycle that does not sample yet, for groups with numbers below the given one.
func NewDutyCycle(p Programs, groups int) *DutyCycle {
	return &DutyCycle{programs: p, now: time.Now, phase: rand.Float64, ratio: MaxRatio, groups: make([]CPUTime, groups)}
}

// Active tells whether events are sampled.
func (d *DutyCycle) Active() bool { return d.active }

// WarmingUp tells whether this cycle is the warm-up.
func (d *DutyCycle) WarmingUp() bool { return d.warmUp }

// SetRatio sets the part of a cycle that the window takes from the next cycle on.
func (d *DutyCycle) SetRatio(r float64) { d.ratio = r }

// Ratio is the part of the time in which events count: 1 while all do.
func (d *DutyCycle) Ratio() float64 {
	if d.active && !d.warmUp {
		return d.ratio
	}
	return 1
}

func (d *DutyCycle) window() time.Duration { return time.Duration(d.ratio * float64(Period)) }

// Begin starts sampling. All groups have just been read. The first cycle is a warm-up where every event was counted until
// now; elsewhere there is nothing that a report could fall behind from.
func (d *DutyCycle) Begin(warmUp bool) {
	d.open, d.seen = true, 0
	d.active, d.warmUp = true, warmUp
	d.programs.Snapshot()
	d.observe()
	for n := range d.groups {
		d.groups[n].restart()
	}
	d.ended = d.now()
	d.opened = d.ended
	d.plan(d.ended)
}

// plan lays out the cycle that begins now.
func (d *DutyCycle) plan(now time.Time) {
	d.began, d.edges = now, nil
	if !d.warmUp {
		d.edges = place(Period, d.window(), d.phase())
	}
}

// Next is when Step must be called.
func (d *DutyCycle) Next() time.Time {
	switch {
	case len(d.edges) > 0:
		return d.began.Add(d.edges[0].at)
	case d.warmUp:
		return d.began.Add(warmUp)
	}
	return d.began.Add(Period)
}

// Step opens and closes the window when it is time to, and tells whether the cycle has ended: then EndCycle must be called.
func (d *DutyCycle) Step() (ended bool, err error) {
	for len(d.edges) > 0 && !d.now().Before(d.Next()) {
		err = errors.Join(err, d.set(d.edges[0].open))
		d.edges = d.edges[1:]
	}
	return len(d.edges) == 0 && !d.now().Before(d.Next()), err
}

// set opens or closes the window. The programs are attached before it opens and detached after it closes: the time that
// this takes is not in it.
func (d *DutyCycle) set(open bool) error {
	switch {
	case d.open == open:
		return nil
	case !open:
		d.programs.Snapshot()
		d.programs.Count(false)
		d.seen += d.now().Sub(d.opened)
		d.observe()
		d.open = false
		return d.programs.Detach()
	}
	// A window in which one of the programs is missing would say that its events did not happen.
	if err := d.programs.Attach(); err != nil {
		return errors.Join(err, d.programs.Detach())
	}
	d.programs.Snapshot()
	d.programs.Count(true)
	d.opened = d.now()
	d.observe()
	d.open = true
	return nil
}

// observe adds the CPU time that each group has used since the last time. Programs.Snapshot was just called.
func (d *DutyCycle) observe() {
	d.programs.CPUTimes(func(group int, ns uint64) { d.groups[group].observe(ns, d.open) })
}

// Cycle says how the counts of a cycle become estimates.
type Cycle struct {
	factor float64 // time that has passed, to time that was seen
	norm   float64 // length that a cycle should have, to that which it had
	weight float64 // of what was learned in it, to that of a whole window
	warmUp bool
}

// Sampled tells whether a part of the cycle was seen, and not all of it.
func (c Cycle) Sampled() bool { return !c.warmUp }

// EndCycle ends a cycle and begins the next one. All groups have just been read. False says that too little was seen to
// estimate anything from, because the agent was not scheduled or could not attach: then this cycle is settled together
// with the next.
func (d *DutyCycle) EndCycle() (Cycle, bool) {
	d.programs.Snapshot()
	now := d.now()
	d.observe()
	if d.open {
		d.seen += now.Sub(d.opened)
		d.opened = now
	}
	if d.seen < d.window()/4 {
		d.plan(now)
		return Cycle{}, false
	}
	passed := now.Sub(d.ended)
	c := Cycle{
		factor: float64(passed) / float64(d.seen), norm: float64(Period) / float64(passed),
		weight: d.weight(), warmUp: d.warmUp,
	}
	d.seen, d.warmUp, d.ended = 0, false, now
	d.plan(now)
	return c, true
}

// weight is less than 1 where more than a window was seen, as in the warm-up.
func (d *DutyCycle) weight() float64 {
	return min(1, float64(d.window())/float64(max(d.seen, 1)))
}

// Interrupted is this cycle as it was planned, for a group that leaves before the end of it.
func (d *DutyCycle) Interrupted() Cycle {
	return Cycle{factor: 1 / d.Ratio(), norm: 1, weight: d.weight(), warmUp: d.warmUp}
}

// End goes back to counting each event. All groups have just been read and settled.
func (d *DutyCycle) End() error {
	err := d.set(true)
	d.active, d.warmUp = false, false
	return err
}

// Fraction is how much of the estimates of the last cycle is reported by now.
func (d *DutyCycle) Fraction() float64 {
	return min(1, float64(d.now().Sub(d.began))/float64(Period))
}

// Take returns the CPU time of a group in this cycle, and begins to add up that of the next one.
func (d *DutyCycle) Take(group int) CPUTime {
	t := d.groups[group]
	d.groups[group].restart()
	return t
}

// Forget drops what is known of a group's CPU time: its number is free for another one.
func (d *DutyCycle) Forget(group int) { d.groups[group] = CPUTime{} }
