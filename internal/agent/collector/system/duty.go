// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
)

// cycleTime: while events are sampled, the frequent probes are attached for one window of each cycle. A cycle
// is short against the interval between two scrapes, and the window, 2 to 100 ms, long against what attaching
// takes (0.4 ms). Of the first time, which is longer, all is seen: what is reported falls behind by a cycle
// slowly then, and is not flat for one.
const (
	cycleTime = time.Second
	firstTime = 3 * cycleTime
)

// switchable attaches and detaches programs.
type switchable interface {
	Detach(program string) error
	Reattach(program string) error
}

// sampledProbe is a frequent probe with the program that it is attached by.
type sampledProbe struct {
	frequent
	program string
}

// duty counts the frequent events for a part of the time.
type duty struct {
	programs switchable
	kernel   *kernelSide
	control  *control
	now      func() time.Time
	phase    func() float64
	probes   []sampledProbe
	part     float64 // of a cycle in which events count
	active   bool
	first    bool                  // all of this cycle is seen
	began    time.Time             // of this cycle
	turns    []turn                // those of it that are still to come
	costs    [sampledKinds]float64 // of an event, in nanoseconds
	ran      []ran                 // by slot

	open    bool          // events count now
	since   time.Time     // when they began to, or when the last cycle was settled
	seen    time.Duration // for how long they have, since the last cycle was settled
	settled time.Time
}

func newDuty(k *kernelSide) *duty {
	d := &duty{
		programs: k.object, kernel: k, control: &k.controls[0], now: time.Now, phase: rand.Float64, part: mostPart,
		costs: watchingCosts(), ran: make([]ran, k.slots),
	}
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

// share is for which part of the time events count now.
func (d *duty) share() float64 {
	if d.active && !d.first {
		return d.part
	}
	return 1
}

// begin starts sampling, after a time in which all is seen where all was seen before. All slots have just been read.
func (d *duty) begin(active map[uint32]*slot, first bool) {
	d.control.Sampled = 1
	for _, sl := range active {
		sl.begin(first)
	}
	d.open, d.seen = true, 0
	d.active, d.first = true, first
	d.kernel.snapshotAll()
	d.tally()
	for n := range d.ran {
		d.ran[n].cycle, d.ran[n].window = 0, 0
	}
	d.settled = d.now()
	d.since = d.settled
	d.cycle(d.settled)
}

// cycle begins the next one.
func (d *duty) cycle(now time.Time) {
	d.began, d.turns = now, nil
	if !d.first {
		d.turns = plan(cycleTime, d.window(), d.phase())
	}
}

// next is when step wants to be called.
func (d *duty) next() time.Time {
	switch {
	case len(d.turns) > 0:
		return d.began.Add(d.turns[0].at)
	case d.first:
		return d.began.Add(firstTime)
	}
	return d.began.Add(cycleTime)
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
		d.kernel.snapshotAll()
		atomic.StoreUint64(&d.control.Closed, 0)
		d.since = d.now()
		d.tally()
		d.open = true
		return nil
	}
	d.kernel.snapshotAll()
	atomic.StoreUint64(&d.control.Closed, 1)
	d.seen += d.now().Sub(d.since)
	d.tally()
	d.open = false
	return d.attach(false)
}

// attach attaches the one on system calls last, and detaches it first: attaching the others takes a while when CPUs are
// busy, and each call is dear meanwhile.
func (d *duty) attach(on bool) error {
	var errs []error
	for i := range d.probes {
		if on {
			errs = append(errs, d.programs.Reattach(d.probes[len(d.probes)-1-i].program))
		} else {
			errs = append(errs, d.programs.Detach(d.probes[i].program))
		}
	}
	return errors.Join(errs...)
}

// settle turns what was counted in a cycle into what happened in it, and begins the next one. All slots
// have just been read. A cycle of which too little was seen to say anything (the machine had no time for us)
// is settled together with the next.
func (d *duty) settle(s *slots) {
	d.kernel.snapshotAll()
	now := d.now()
	d.tally()
	if d.open {
		d.seen += now.Sub(d.since)
		d.since = now
	}
	if d.seen < d.window()/4 {
		for _, sl := range s.active {
			sl.hold()
		}
		d.cycle(now)
		return
	}
	passed := now.Sub(d.settled)
	for _, sl := range s.active {
		// Cycles are compared as if each had taken as long as it should.
		d.add(sl, float64(passed)/float64(d.seen), float64(cycleTime)/float64(passed))
	}
	s.registry.Each(func(w *workload.Workload[kept]) {
		for k := range w.Kept.sampled {
			w.Kept.sampled[k].turn(!d.first)
		}
	})
	d.seen, d.first, d.settled = 0, false, now
	d.cycle(now)
}

// add settles a slot.
func (d *duty) add(sl *slot, factor, norm float64) {
	spent := 0.0
	for _, p := range d.probes {
		spent += float64(sl.unsettled(p.frequent)) * d.costs[p.kind]
	}
	t := d.ran[sl.number].without(spent)
	weight := min(1, float64(d.window())/float64(max(d.seen, 1))) // all is seen of the first cycle
	for _, p := range d.probes {
		v := &sl.owner.Kept.sampled[p.kind]
		strayed, doubt := sl.settle(p.frequent, factor, t, weight)
		v.now += strayed * norm
		v.doubt += doubt * norm
	}
	if missed := t.cycle - factor*t.window; d.first {
		sl.estimate.learn(t, weight, 0)
	} else {
		sl.estimate.learn(t, weight, missed*norm)
	}
	sl.estimate.first = false
	// Of a group that is not known yet neither events nor CPU time are settled.
	d.ran[sl.number].cycle, d.ran[sl.number].window = 0, 0
}

// flush settles a slot that is about to be given back, by the part of time that was planned.
func (d *duty) flush(sl *slot) {
	if sl.estimate != nil {
		d.add(sl, 1/d.share(), 1)
		sl.report(1)
	}
	d.ran[sl.number] = ran{}
}

// end goes back to counting each event. All slots have just been read and settled.
func (d *duty) end(active map[uint32]*slot) error {
	err := d.turn(true)
	for _, sl := range active {
		sl.end()
	}
	d.active, d.first, d.control.Sampled = false, false, 0
	return err
}

// fraction is how much of the last cycle's events is reported by now.
func (d *duty) fraction() float64 {
	return min(1, float64(d.now().Sub(d.began))/float64(cycleTime))
}
