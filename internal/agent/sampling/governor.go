// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"slices"
	"time"
)

// The governor steps down at once, except to Off, where nothing is measured any more. It steps up only after the more
// expensive level has had headroom for some time. Otherwise a load near the budget would make it step at each measurement.
const (
	headroomToStepUp = 0.7
	waitToStepUp     = 30 * time.Second
	// waitToStop is the time for which the shortest windows must cost too much before the governor steps to Off. The rates of
	// single seconds vary too much: bursts and delayed estimates shift events from one second to the next.
	waitToStop = 5 * time.Second
	// leastHeadroom is the fraction of the budget that frequent events always get. Above the budget this is all that
	// they may cost.
	leastHeadroom = 0.1
	// agentLimit is the fraction of the budget that frequent events get at least, however much the agent's own work costs.
	agentLimit = 0.5
	// fillTo is the fraction of the headroom that windows use.
	fillTo = 0.9
	// watchedBudget is the factor on the budget if processes are watched, because the user has requested exact counts.
	watchedBudget = 5
)

// minRatio is the lower limit of the duty cycle, the ratio of the window to the cycle.
const minRatio = 0.002

// maxRatio is the upper limit of the duty cycle.
const maxRatio = 0.1

// Governor keeps the cost of counting below a budget.
type Governor struct {
	Budget   float64 // share of the machine's CPU time; 0, or 1 and more, means no limit
	Timing   bool    // the time of system calls is measured
	Watching bool    // some processes are watched
	CPUs     int

	Level  Level
	Demand Demand    // the demand at the last decision
	since  time.Time // time since which the more expensive level has headroom; zero without headroom
	over   time.Time // time since which the level before Off costs too much; zero if it does not
}

// Limited reports whether the budget is a limit.
func (g *Governor) Limited() bool { return g.Budget > 0 && g.Budget < 1 }

// Limit returns the share of the machine's CPU time that counting may take.
func (g *Governor) Limit() float64 {
	if g.Watching {
		return g.Budget * watchedBudget
	}
	return g.Budget
}

// exits reports whether the level Full has a probe on the ends of system calls.
func (g *Governor) exits() bool { return g.Timing || g.Watching }

// Cost returns the minimum share of the machine's CPU time that a level takes for frequent events.
func (g *Governor) Cost(l Level) float64 {
	return g.Demand.frequent(l, g.exits(), minRatio) / float64(g.CPUs)
}

// Spent returns the share of the machine's CPU time that all programs take now, at this ratio of the window to the
// cycle.
func (g *Governor) Spent(ratio float64) float64 {
	return (g.Demand.frequent(g.Level, g.exits(), ratio) + g.Demand.always()) / float64(g.CPUs)
}

// Always returns the share of the machine's CPU time that the programs take which run at every level.
func (g *Governor) Always() float64 { return g.Demand.always() / float64(g.CPUs) }

// headroom returns the part of the budget that frequent events may take: the budget minus all other costs. The work of
// the agent, which is high at the start, leaves them at least agentLimit of it. The events that every level counts leave
// them leastHeadroom, so that other costs alone never stop the counting.
func (g *Governor) headroom() float64 {
	always, agent := g.Demand.always(), g.Demand.Agent
	left := g.Limit() - always/float64(g.CPUs)
	leftByAgent := g.Limit() - (always+agent)/float64(g.CPUs)
	return max(g.Limit()*leastHeadroom, min(left, max(g.Limit()*agentLimit, leftByAgent)))
}

// Ratio returns the ratio of the window to the cycle while events are sampled. It is as large as the budget allows,
// because a longer window has a smaller error.
func (g *Governor) Ratio() float64 {
	left := g.headroom()*fillTo*float64(g.CPUs) - g.Demand.frequent(Sampled, g.exits(), 0)
	return min(maxRatio, max(minRatio, left/max(g.Demand.frequent(Untimed, false, 1)-g.Demand.Staying, 1e-9)))
}

// Decide sets and returns the level for the current demand.
func (g *Governor) Decide(now time.Time, d Demand) Level {
	g.Demand = d
	if !g.Limited() {
		g.Level = Full
		return g.Level
	}
	ladder := g.ladder()
	at := slices.Index(ladder, g.Level)
	for at < len(ladder)-1 && g.Cost(ladder[at]) > g.headroom() && (ladder[at+1] != Off || g.mayStop(now)) {
		at++
	}
	if ladder[at] != Off && g.Cost(ladder[len(ladder)-2]) <= g.headroom() {
		g.over = time.Time{}
	}
	switch {
	case ladder[at] != g.Level:
		g.since = time.Time{}
	case at > 0 && g.mayStepUp(now, ladder[at-1]):
		at--
		g.over = time.Time{}
	}
	g.Level = ladder[at]
	return g.Level
}

// Want changes the requested measurements and the budget. It sets and returns the best level for the last known demand, so that a
// user who requests more does not wait until headroom has lasted.
func (g *Governor) Want(timing, watching bool, budget float64) Level {
	before := g.Cost(g.Level)
	g.Timing, g.Watching, g.Budget = timing, watching, budget
	g.since, g.over = time.Time{}, time.Time{}
	g.Level = Full
	if !g.Limited() {
		return g.Level
	}
	for _, l := range g.ladder() {
		if l == Off { // only Decide stops
			break
		}
		left := g.headroom()
		if g.Level = l; g.Cost(l) > before {
			left *= headroomToStepUp
		}
		if g.Cost(l) <= left {
			break
		}
	}
	return g.Level
}

// mayStop reports whether the level before Off has cost too much for long enough.
func (g *Governor) mayStop(now time.Time) bool {
	if g.over.IsZero() {
		g.over = now
	}
	return now.Sub(g.over) >= waitToStop
}

// mayStepUp reports whether a more expensive level has had headroom for long enough. At Off nothing is measured, so the
// governor leaves this level from time to time to measure.
func (g *Governor) mayStepUp(now time.Time, to Level) bool {
	switch {
	case g.Level != Off && g.Cost(to) > g.headroom()*headroomToStepUp:
		g.since = time.Time{}
	case g.since.IsZero():
		g.since = now
	case now.Sub(g.since) >= waitToStepUp:
		g.since = time.Time{}
		return true
	}
	return false
}

// ladder lists the levels that make a difference in this configuration.
func (g *Governor) ladder() []Level {
	all := []Level{Full}
	if g.Timing {
		all = append(all, Untimed)
	}
	if g.Watching {
		return append(all, SampledSums, Off)
	}
	return append(all, Sampled, Off)
}
