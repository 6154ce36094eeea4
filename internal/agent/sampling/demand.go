// SPDX-License-Identifier: Apache-2.0

package sampling

import "time"

// attachCost is the CPU time of attaching and detaching one program, which happens once in each cycle. It is assumed
// until it is measured.
const attachCost = 150 * time.Microsecond

// Demand is the load on the machine, per second.
type Demand struct {
	Calls, Faults, Cache, Switches float64
	Others                         float64 // CPU seconds of programs on rare events, on the machine of the constants
	Agent                          float64 // CPU seconds of the agent
	// Measured is the CPU seconds of other programs that measure themselves on this machine.
	Measured float64
	Programs int // number of programs that are attached in each cycle while events are sampled
	// Attaching is the measured CPU time of attaching and detaching one of them. It is 0 before it was measured.
	Attaching time.Duration
	// Dirtied is the part of Cache that are dirtied buffers, which have a program of their own.
	Dirtied float64
	// Staying is the CPU seconds of programs that stay attached outside the window, if they were counting there. They only return.
	Staying float64
	Costs   EventCosts
}

// Cheaper reports whether a program costs less if it stays attached all the time than if it is attached once in each cycle. It is
// given the CPU seconds per second that it takes all the time, and the measured CPU time of attaching and detaching it, which is 0
// before it was measured. A program that does not stay yet needs a clear difference.
func Cheaper(spent float64, attaching time.Duration, stays bool) bool {
	if attaching == 0 {
		return stays
	}
	limit := attaching.Seconds() / Period.Seconds()
	if !stays {
		limit /= 2
	}
	return spent < limit
}

// frequent returns the CPU seconds per second that a level takes for frequent events. The ratio is the fraction of the
// time for which sampled programs are attached.
func (d Demand) frequent(l Level, exits bool, ratio float64) float64 {
	c := &d.Costs
	all := d.Calls*c.of(Syscall) + d.Faults*c.of(PageFault) + d.Cache*c.of(PageCache)
	switch {
	case l == Off:
		return 0
	case l.Samples():
		return (all-d.Staying)*ratio + d.Staying + float64(d.Programs)*d.attaching().Seconds()
	case l == Full && exits:
		return all + d.Calls*c.of(SyscallExit)
	}
	return all
}

func (d Demand) attaching() time.Duration {
	if d.Attaching == 0 {
		return attachCost
	}
	return d.Attaching
}

// always returns the CPU seconds per second of events that are counted at every level.
func (d Demand) always() float64 {
	return d.Switches*d.Costs.of(ContextSwitch) + d.Others*d.Costs.scale() + d.Measured
}

// decideEvery is the minimum time between two decisions. It is shorter than half a second, so that each half may have one.
const decideEvery = 450 * time.Millisecond

// Totals are the events since the agent started.
type Totals struct {
	Calls, Faults, Cache, Switches uint64
	Dirtied                        uint64        // part of Cache
	Others                         time.Duration // CPU time of programs on rare events, on the machine of the constants
	Measured                       time.Duration // CPU time of programs that measure themselves
	Agent                          time.Duration // CPU time of the agent
}

// Meter computes the demand from totals.
type Meter struct {
	At     time.Time // time at which the totals were last read; zero before
	totals Totals
}

// Due reports whether it is time to read the totals.
func (m *Meter) Due(now time.Time) bool { return m.At.IsZero() || now.Sub(m.At) >= decideEvery }

// Read returns the rates since the last call, and false at the first one. While frequent events are not counted, their
// last known rates are used.
func (m *Meter) Read(now time.Time, t Totals, last Demand, counted bool) (Demand, bool) {
	was := *m
	*m = Meter{now, t}
	if was.At.IsZero() {
		return last, false
	}
	passed := now.Sub(was.At).Seconds()
	rate := func(from, to uint64) float64 { return max(0, float64(int64(to-from))) / passed }
	d := Demand{
		Calls: rate(was.totals.Calls, t.Calls), Faults: rate(was.totals.Faults, t.Faults),
		Cache: rate(was.totals.Cache, t.Cache), Switches: rate(was.totals.Switches, t.Switches), Dirtied: rate(was.totals.Dirtied, t.Dirtied),
		Others: max(0, (t.Others-was.totals.Others).Seconds()/passed), Measured: max(0, (t.Measured-was.totals.Measured).Seconds()/passed),
		Agent: (t.Agent - was.totals.Agent).Seconds() / passed,
	}
	if !counted {
		d.Calls, d.Faults, d.Cache, d.Dirtied = last.Calls, last.Faults, last.Cache, last.Dirtied
	}
	return d, true
}
