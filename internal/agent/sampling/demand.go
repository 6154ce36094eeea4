// SPDX-License-Identifier: Apache-2.0

package sampling

import "time"

// attachCost is the CPU time of attaching and detaching one program, once in each cycle.
const attachCost = 150 * time.Microsecond

// Demand is what happens on the machine, per second.
type Demand struct {
	Calls, Faults, Cache, Switches float64
	Agent                          float64 // CPU seconds of the agent
	Programs                       int     // that are attached in each cycle while events are sampled
	Costs                          EventCosts
}

// frequent is the CPU time that a level takes for frequent events, in seconds of a second. While they are sampled, their
// programs are attached for that part of the time.
func (d Demand) frequent(l Level, exits bool, ratio float64) float64 {
	c := &d.Costs
	all := d.Calls*c.of(Syscall) + d.Faults*c.of(PageFault) + d.Cache*c.of(PageCache)
	switch {
	case l == Off:
		return 0
	case l.Samples():
		return all*ratio + float64(d.Programs)*attachCost.Seconds()
	case l == Full && exits:
		return all + d.Calls*c.of(SyscallExit)
	}
	return all
}

// always is the CPU time of what is counted at every level.
func (d Demand) always() float64 { return d.Switches * d.Costs.of(ContextSwitch) }

// decideEvery is the least time between two decisions: rates over less are noise.
const decideEvery = 2 * time.Second

// Totals are what has happened since the agent started.
type Totals struct {
	Calls, Faults, Cache, Switches uint64
	Agent                          time.Duration // CPU time of the agent
}

// Meter turns totals into a demand.
type Meter struct {
	At     time.Time // when the totals were read; zero before
	totals Totals
}

// Due tells whether it is time to read the totals.
func (m *Meter) Due(now time.Time) bool { return m.At.IsZero() || now.Sub(m.At) >= decideEvery }

// Read takes the rates since the last time, and false when it is the first. While frequent events are not counted, their
// last rates stand: there are no others.
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
		Cache: rate(was.totals.Cache, t.Cache), Switches: rate(was.totals.Switches, t.Switches),
		Agent: (t.Agent - was.totals.Agent).Seconds() / passed,
	}
	if !counted {
		d.Calls, d.Faults, d.Cache = last.Calls, last.Faults, last.Cache
	}
	return d, true
}
