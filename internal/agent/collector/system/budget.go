// SPDX-License-Identifier: Apache-2.0

package system

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/workload"
)

// level is how much is watched. Each costs less than the one before.
type level int

const (
	levelFull    level = iota // all that was asked for
	levelUntimed              // without the time of system calls
	levelSampled              // frequent events are sampled
	levelTotals               // the same, and watched processes are not broken down
	levelOff                  // frequent events are not counted
	levels
)

// levelNames are the values of the label level.
var levelNames = [levels]string{"full", "untimed", "sampled", "totals", "off"}

// turnCost is attaching and detaching one probe, once in each cycle.
const turnCost = 150 * time.Microsecond

// Stepping down happens at once, up only when the dearer level has had room for a while: else a load near
// the budget would make it step with each measurement.
const (
	roomToStepUp = 0.7
	waitToStepUp = 30 * time.Second
	// leastRoom is the part of the budget that frequent events have, however much the rest takes.
	leastRoom = 0.5
	// While sampled, the frequent probes are attached for between these parts of the time, so that the
	// budget is used up to fillTo.
	leastPart, mostPart = 0.002, 0.1
	fillTo              = 0.9
	// watchedBudget: who watches a process asks for exact counts, and is given this much more.
	watchedBudget = 5
	// decideEvery is the least time between two decisions: rates of less are noise.
	decideEvery = 2 * time.Second
)

// demand is what happens on the machine, per second.
type demand struct {
	calls, faults, cache, switches float64
	agent                          float64 // CPU seconds of this process
	turns                          int     // probes that are attached in each cycle while sampled
	programs                       programCosts
}

// frequent is the CPU time that a level takes for frequent events, in seconds of a second; while sampled,
// the probes are attached for that part of the time.
func (d demand) frequent(l level, exits bool, part float64) float64 {
	p := &d.programs
	all := d.calls*p.event(meterCall) + d.faults*p.event(meterFault) + d.cache*p.event(meterCache)
	switch {
	case l == levelOff:
		return 0
	case samples(l):
		return all*part + float64(d.turns)*turnCost.Seconds()
	case l == levelFull && exits:
		return all + d.calls*p.event(meterExit)
	}
	return all
}

// always is the CPU time of what no level changes.
func (d demand) always() float64 { return d.switches * d.programs.event(meterSwitch) }

// governor keeps what watching costs below a budget.
type governor struct {
	budget   float64 // share of the machine's CPU time; 0, or 1 and more, is no limit
	timing   bool    // the time of system calls was asked for
	watching bool    // processes are broken down
	cpus     int

	level  level
	roomy  time.Time // since when the next level up has had room; zero when it has not
	demand demand
}

// ladder lists the levels that make a difference for what was asked for.
func (g *governor) ladder() []level {
	all := []level{levelFull}
	if g.timing {
		all = append(all, levelUntimed)
	}
	if g.watching {
		return append(all, levelTotals, levelOff)
	}
	return append(all, levelSampled, levelOff)
}

// exits tells whether the ends of system calls are seen as long as all is.
func (g *governor) exits() bool { return g.timing || g.watching }

func (g *governor) limit() float64 {
	if g.watching {
		return g.budget * watchedBudget
	}
	return g.budget
}

// cost is the least share of the machine that a level would take for frequent events.
func (g *governor) cost(l level) float64 {
	return g.demand.frequent(l, g.exits(), leastPart) / float64(g.cpus)
}

// room is what the rest of watching leaves of the budget for frequent events. However much that is, it does
// not blind the agent: a part is theirs.
func (g *governor) room() float64 {
	return max(g.limit()*leastRoom, g.limit()-(g.demand.always()+g.demand.agent)/float64(g.cpus))
}

// part is for how much of the time the frequent probes may be attached while sampled: as long as the budget
// lets them, because a longer look is a surer one.
func (g *governor) part() float64 {
	room := g.room()*fillTo*float64(g.cpus) - g.demand.frequent(levelSampled, g.exits(), 0)
	return min(mostPart, max(leastPart, room/max(g.demand.frequent(levelUntimed, false, 1), 1e-9)))
}

// decide sets the level for what happens now.
func (g *governor) decide(now time.Time, d demand) level {
	g.demand = d
	ladder := g.ladder()
	at := slices.Index(ladder, g.level)
	if g.budget <= 0 || g.budget >= 1 {
		g.level = levelFull
		return g.level
	}
	for at < len(ladder)-1 && g.cost(ladder[at]) > g.room() {
		at++
		g.roomy = time.Time{}
	}
	// What rests is not measured: off is left now and then to see.
	room := at > 0 && (g.level == levelOff || g.cost(ladder[at-1]) <= g.room()*roomToStepUp)
	switch {
	case ladder[at] != g.level:
	case !room:
		g.roomy = time.Time{}
	case g.roomy.IsZero():
		g.roomy = now
	case now.Sub(g.roomy) >= waitToStepUp:
		at--
		g.roomy = time.Time{}
	}
	g.level = ladder[at]
	return g.level
}

// meter turns totals into rates.
type meter struct {
	at                             time.Time
	calls, faults, cache, switches uint64
	agent                          time.Duration
}

// read takes the rates since the last time, and false before there are any. While the frequent probes
// rest, their last rates stand: nobody knows better.
func (m *meter) read(now time.Time, s *slots, last demand, resting bool) (demand, bool) {
	if !m.at.IsZero() && now.Sub(m.at) < decideEvery {
		return last, false
	}
	next := meter{at: now, agent: cpuOfAgent()}
	add := func(r *row) {
		for _, n := range r.Calls {
			next.calls += n
		}
		for mode := range r.Faults {
			for _, n := range r.Faults[mode] {
				next.faults += n
			}
		}
		for _, n := range r.Cache {
			next.cache += n
		}
		next.switches += r.Switches[0] + r.Switches[1]
	}
	s.registry.Each(func(w *workload.Workload[kept]) { add(&w.Kept.row) })
	for _, sl := range s.active {
		add(&sl.row)
	}
	was := *m
	*m = next
	if was.at.IsZero() {
		return last, false
	}
	passed := now.Sub(was.at).Seconds()
	rate := func(from, to uint64) float64 { return max(0, float64(int64(to-from))) / passed }
	d := demand{
		calls: rate(was.calls, next.calls), faults: rate(was.faults, next.faults), cache: rate(was.cache, next.cache),
		switches: rate(was.switches, next.switches), agent: (next.agent - was.agent).Seconds() / passed,
		turns: len(s.duty.probes),
	}
	if resting {
		d.calls, d.faults, d.cache = last.calls, last.faults, last.cache
	}
	return d, true
}

// cpuOfAgent is the CPU time of this process.
func cpuOfAgent() time.Duration {
	var use unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &use) // fails on wrong arguments only
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
