// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"teescope/internal/workload"
)

// cycleTime: while events are sampled, the frequent probes are attached for one window of each cycle. A cycle
// is short against the interval between two scrapes, and the window, 2 to 100 ms, long against what attaching
// takes (0.4 ms).
const cycleTime = time.Second

// switchable attaches and detaches programs.
type switchable interface {
	Rest(program string) error
	Resume(program string) error
}

// sampledProbe is a frequent probe with the program that it is attached by.
type sampledProbe struct {
	frequent
	program string
}

// duty counts the frequent events for a part of the time.
type duty struct {
	programs switchable
	control  *control
	now      func() time.Time
	phase    func() float64
	probes   []sampledProbe
	part     float64 // of a cycle in which events count
	active   bool
	began    time.Time // of this cycle
	turns    []turn    // those of it that are still to come

	open    bool          // events count now
	since   time.Time     // when they began to, or when the last cycle was settled
	seen    time.Duration // for how long they have, since the last cycle was settled
	settled time.Time
}

func newDuty(k *kernelSide) *duty {
	d := &duty{programs: k.object, control: &k.controls[0], now: time.Now, phase: rand.Float64, part: mostPart}
	for _, f := range frequentProbes() {
		for _, s := range k.status {
			if s.Probe == f.probe && s.Attached() {
				d.probes = append(d.probes, sampledProbe{f, s.Program})
			}
		}
	}
	return d
}

func (d *duty) window() time.Duration { return time.Duration(d.part * float64(cycleTime)) }

// begin starts sampling. All slots have just been read.
func (d *duty) begin(active map[uint32]*slot) {
	d.control.Sampled = 1
	for _, sl := range active {
		sl.begin()
	}
	d.open, d.seen = true, 0
	d.active = true
	d.cycle(d.now())
}

// cycle begins the next one.
func (d *duty) cycle(now time.Time) {
	d.began, d.since, d.settled = now, now, now
	d.turns = plan(cycleTime, d.window(), d.phase())
}

// next is when step wants to be called.
func (d *duty) next() time.Time {
	if len(d.turns) == 0 {
		return d.began.Add(cycleTime)
	}
	return d.began.Add(d.turns[0].at)
}

// step does what is due, and tells whether a cycle has ended: then its events are to be settled.
func (d *duty) step() (ended bool, err error) {
	for len(d.turns) > 0 && !d.now().Before(d.next()) {
		err = errors.Join(err, d.turn(d.turns[0].on))
		d.turns = d.turns[1:]
	}
	return len(d.turns) == 0 && !d.now().Before(d.next()), err
}

// turn opens or closes the window. The programs are attached before it is open and detached after it is
// closed: their work is not in it.
func (d *duty) turn(open bool) error {
	if d.open == open {
		return nil
	}
	if open {
		// A window in which a program is missing would say that its events did not happen.
		if err := d.attach(true); err != nil {
			return errors.Join(err, d.attach(false))
		}
		d.open = true
		atomic.StoreUint64(&d.control.Closed, 0)
		d.since = d.now()
		return nil
	}
	d.open = false
	d.seen += d.now().Sub(d.since)
	atomic.StoreUint64(&d.control.Closed, 1)
	return d.attach(false)
}

func (d *duty) attach(on bool) error {
	var errs []error
	for _, p := range d.probes {
		act := d.programs.Rest
		if on {
			act = d.programs.Resume
		}
		errs = append(errs, act(p.program))
	}
	return errors.Join(errs...)
}

// settle turns what was counted in a cycle into what happened in it, and begins the next one. All slots
// have just been read. A cycle of which too little was seen to say anything (the machine had no time for us)
// is settled together with the next.
func (d *duty) settle(s *slots) {
	now := d.now()
	if d.open {
		d.seen += now.Sub(d.since)
		d.since = now
	}
	if d.seen < d.window()/4 {
		for _, sl := range s.active {
			sl.hold()
		}
		d.began, d.turns = now, plan(cycleTime, d.window(), d.phase())
		return
	}
	passed := now.Sub(d.settled)
	for _, sl := range s.active {
		// Cycles are compared as if each had taken as long as it should.
		d.add(sl, float64(passed)/float64(d.seen), float64(cycleTime)/float64(passed))
	}
	s.registry.Each(func(w *workload.Workload[kept]) {
		for k := range w.Kept.sampled {
			w.Kept.sampled[k].turn()
		}
	})
	d.seen = 0
	d.cycle(now)
}

// add settles a slot.
func (d *duty) add(sl *slot, factor, norm float64) {
	for _, p := range d.probes {
		sl.owner.Kept.sampled[p.kind].now += sl.settle(p.frequent, factor) * norm
	}
}

// flush settles a slot that is about to be given back, by the part of time that was planned.
func (d *duty) flush(sl *slot) {
	if sl.estimate == nil {
		return
	}
	d.add(sl, 1/d.part, 1)
	sl.report(1)
}

// end goes back to counting each event. All slots have just been read and settled.
func (d *duty) end(active map[uint32]*slot) error {
	err := d.turn(true)
	for _, sl := range active {
		sl.end()
	}
	d.active, d.control.Sampled = false, 0
	return err
}

// fraction is how much of the last cycle's events is reported by now.
func (d *duty) fraction() float64 {
	return min(1, float64(d.now().Sub(d.began))/float64(cycleTime))
}
