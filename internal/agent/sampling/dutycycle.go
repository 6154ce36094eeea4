// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"errors"
	"math/rand/v2"
	"time"
)

// Period is the length of a cycle. It is short compared with the interval between two scrapes. The window of 2 to 100
// ms is long compared with the time of attaching (0.4 ms).
const Period = time.Second

// delayBy is the number of cycles by which the delay of reported counts grows in each cycle. The delay is zero in the warm-up, in
// which everything is counted. So a steady rate looks 5 % lower for twenty seconds.
const delayBy = 0.05

// Programs count the events that are sampled.
type Programs interface {
	// Attach attaches the programs, and Detach detaches them.
	Attach() error
	Detach() error
	// Count switches counting by attached programs on or off.
	Count(on bool)
	// Snapshot stores the CPU time of running threads, so that CPUTimes includes it.
	Snapshot()
	// CPUTimes calls report with the CPU time of each group since it was created, in nanoseconds.
	CPUTimes(report func(group int, ns uint64))
}

// DutyCycle restricts the counting of programs to one window in each cycle.
type DutyCycle struct {
	programs Programs
	now      func() time.Time
	phase    func() float64 // phase of a window in its cycle, in [0, 1)

	ratio  float64 // of the window to the cycle
	active bool
	warmUp bool // this cycle is the warm-up, in which everything is counted
	final  bool // sampling ends with this cycle
	ahead  float64
	began  time.Time
	edges  []edge // remaining edges of this cycle
	groups []CPUTime

	open   bool          // the window is open
	opened time.Time     // later one of the times at which the window opened and the last cycle ended
	seen   time.Duration // time for which the window was open since the last cycle ended
	ended  time.Time     // time at which the last cycle ended
}

// NewDutyCycle returns a duty cycle that does not sample yet, for groups with numbers below the given one.
func NewDutyCycle(p Programs, groups int) *DutyCycle {
	return &DutyCycle{programs: p, now: time.Now, phase: rand.Float64, ratio: maxRatio, groups: make([]CPUTime, groups)}
}

// Active reports whether events are sampled.
func (d *DutyCycle) Active() bool { return d.active }

// WarmingUp reports whether this cycle is the warm-up.
func (d *DutyCycle) WarmingUp() bool { return d.warmUp }

// SetRatio sets the ratio of the window to the cycle, from the next cycle on.
func (d *DutyCycle) SetRatio(r float64) { d.ratio = r }

// Ratio returns the fraction of the time in which events are counted. It is 1 while all events are.
func (d *DutyCycle) Ratio() float64 {
	if d.active && !d.warmUp {
		return d.ratio
	}
	return 1
}

func (d *DutyCycle) window() time.Duration { return time.Duration(d.ratio * float64(Period)) }

// Begin starts sampling. The caller has just read all groups. The first cycle is a warm-up if every event was counted
// until now. Otherwise the reported counts need not fall behind.
func (d *DutyCycle) Begin(warmUp bool) {
	d.open, d.seen = true, 0
	d.active, d.warmUp, d.final, d.ahead = true, warmUp, false, 0
	if warmUp {
		d.ahead = 1
	}
	d.programs.Snapshot()
	d.observe()
	for n := range d.groups {
		d.groups[n].restart()
	}
	d.ended = d.now()
	d.opened = d.ended
	d.plan(d.ended)
}

// plan plans the window of the cycle that begins now.
func (d *DutyCycle) plan(now time.Time) {
	d.began, d.edges = now, nil
	if !d.warmUp {
		d.edges = windowEdges(Period, d.window(), d.phase())
	}
}

// Next returns the time at which Step must be called.
func (d *DutyCycle) Next() time.Time {
	if len(d.edges) > 0 {
		return d.began.Add(d.edges[0].at)
	}
	return d.began.Add(Period)
}

// Opens reports whether the next step is due and opens the window.
func (d *DutyCycle) Opens() bool {
	return len(d.edges) > 0 && d.edges[0].open && !d.now().Before(d.Next())
}

// Step opens and closes the window when it is due, and reports whether the cycle has ended. Then EndCycle must be
// called.
func (d *DutyCycle) Step() (ended bool, err error) {
	for len(d.edges) > 0 && !d.now().Before(d.Next()) {
		err = errors.Join(err, d.set(d.edges[0].open))
		d.edges = d.edges[1:]
	}
	return len(d.edges) == 0 && !d.now().Before(d.Next()), err
}

// set opens or closes the window. The programs are attached before it opens and detached after it closes, so that the
// window does not include the time of attaching.
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
	// Without one of the programs, its events would count as absent.
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

// observe adds the CPU time that each group has used since the last call. The caller has just called Programs.Snapshot.
func (d *DutyCycle) observe() {
	d.programs.CPUTimes(func(group int, ns uint64) { d.groups[group].observe(ns, d.open) })
}

// Observe adds the CPU time of a group without running threads, given in total since it was created.
func (d *DutyCycle) Observe(group int, ns uint64) { d.groups[group].observe(ns, d.open) }

// Cycle holds the factors that convert the counts of a cycle into estimates.
type Cycle struct {
	factor float64 // ratio of the length of the cycle to the time in the window
	norm   float64 // ratio of the planned length of the cycle to the actual one
	weight float64 // weight of the cycle in event rates; 1 for a planned window
	ahead  float64 // the part of the next cycle's events that is reported in it, as a forecast
	unseen float64 // length of the cycle in periods, if it ended before its window; otherwise 0
	warmUp bool
	final  bool // the group or sampling ends
}

// hasSampled reports whether only a part of the cycle was counted.
func (c Cycle) hasSampled() bool { return !c.warmUp }

// EndCycle ends a cycle and begins the next one. The caller has just read all groups. EndCycle returns false if the
// window was too short for estimates, because the agent was not scheduled or could not attach. Then this cycle is
// corrected together with the next.
func (d *DutyCycle) EndCycle() (Cycle, bool) {
	d.programs.Snapshot()
	now := d.now()
	d.observe()
	if d.open {
		d.seen += now.Sub(d.opened)
		d.opened = now
	}
	passed := now.Sub(d.ended)
	c := Cycle{
		factor: float64(passed) / float64(d.seen), norm: float64(Period) / float64(passed),
		weight: d.weight(), ahead: d.ahead, warmUp: d.warmUp, final: d.final,
	}
	if d.seen < d.window()/4 {
		if !d.final {
			d.plan(now)
			return Cycle{}, false
		}
		c.unseen = float64(passed) / float64(Period)
	}
	d.ahead = max(0, d.ahead-delayBy)
	d.seen, d.warmUp, d.ended = 0, false, now
	d.plan(now)
	return c, true
}

// weight is less than 1 if more time than a planned window was counted, as in the warm-up.
func (d *DutyCycle) weight() float64 {
	return min(1, float64(d.window())/float64(max(d.seen, 1)))
}

// Interrupted returns this cycle as planned, for a group that ends before the cycle does. If the group begins again, the rest of
// the cycle is estimated by itself. Estimates are linear, so those of both parts add up to that of the whole cycle.
func (d *DutyCycle) Interrupted() Cycle {
	return Cycle{factor: d.planned(), norm: 1, weight: d.weight(), warmUp: d.warmUp, final: true}
}

// planned returns the factor that this cycle will have: the windows so far were open for as long as they were, and the rest is as planned.
func (d *DutyCycle) planned() float64 {
	if d.warmUp || !d.active {
		return 1
	}
	now, end := d.now(), d.began.Add(Period)
	seen, open, from := d.seen, d.open, now
	if open {
		seen += now.Sub(d.opened)
	}
	for _, e := range d.edges {
		at := d.began.Add(e.at)
		if open && at.After(from) {
			seen += at.Sub(from)
		}
		if at.After(from) {
			from = at
		}
		open = e.open
	}
	if open && end.After(from) {
		seen += end.Sub(from)
	}
	return float64(max(end.Sub(d.ended), now.Sub(d.ended))) / float64(max(seen, 1))
}

// Finish opens the window for good. Then the caller reads all groups and calls EndCycle and End. If this cycle had no
// window yet, its events are extrapolated from the last cycle.
func (d *DutyCycle) Finish() error {
	d.final, d.edges = true, nil
	return d.set(true)
}

// End returns to counting each event, after Finish and EndCycle.
func (d *DutyCycle) End() { d.active, d.warmUp = false, false }

// Fraction returns the fraction of the last cycle's estimates that is reported by now.
func (d *DutyCycle) Fraction() float64 {
	return min(1, float64(d.now().Sub(d.began))/float64(Period))
}

// Take returns the CPU time of a group in this cycle, and restarts it for the next one.
func (d *DutyCycle) Take(group int) CPUTime {
	t := d.groups[group]
	d.groups[group].restart()
	return t
}

// Forget deletes the CPU time of a group that has ended, because another group may get its number.
func (d *DutyCycle) Forget(group int) { d.groups[group] = CPUTime{} }
