// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"slices"
	"time"
)

// The governor steps down at once. It steps up only after the more expensive level has had headroom for a while, because a
// load near the budget would otherwise make it step with each measurement.
const (
	headroomToStepUp = 0.7
	waitToStepUp     = 30 * time.Second
	// leastHeadroom is the part of the budget that frequent events always have, however much the rest takes.
	leastHeadroom = 0.5
	// fillTo is the part of the headroom that windows are made as long as to use.
	fillTo = 0.9
	// watchedBudget is the factor by which the budget is raised where processes are watched: exact counts were asked for.
	watchedBudget = 5
)

// MinRatio is the lower bound of the duty cycle: the part of a cycle that the window takes.
const MinRatio = 0.002

// MaxRatio is the upper bound of the duty cycle.
const MaxRatio = 0.1

// Governor keeps the cost of counting below a budget.
type Governor struct {
	Budget   float64 // share of the machine's CPU time; 0, or 1 and more, is no limit
	Timing   bool    // the time of system calls was asked for
	Watching bool    // processes are broken down
	CPUs     int

	Level  Level
	Demand Demand    // that Level was decided for
	since  time.Time // when the next level up got its headroom; zero when it has none
}

// Limited tells whether there is a budget to keep.
func (g *Governor) Limited() bool { return g.Budget > 0 && g.Budget < 1 }

// Limit is the share of the machine's CPU time that counting may take.
func (g *Governor) Limit() float64 {
	if g.Watching {
		return g.Budget * watchedBudget
	}
	return g.Budget
}

// exits tells whether the ends of system calls are seen at the level Full.
func (g *Governor) exits() bool { return g.Timing || g.Watching }

// Cost is the least share of the machine's CPU time that a level takes for frequent events.
func (g *Governor) Cost(l Level) float64 {
	return g.Demand.frequent(l, g.exits(), MinRatio) / float64(g.CPUs)
}

// Spent is the share of the machine's CPU time that all programs take now, when the window takes that part of a cycle.
func (g *Governor) Spent(ratio float64) float64 {
	return (g.Demand.frequent(g.Level, g.exits(), ratio) + g.Demand.always()) / float64(g.CPUs)
}

// headroom is the part of the budget that frequent events may take: what the rest leaves of it, and a fixed part at least,
// so that the rest alone never stops the counting.
func (g *Governor) headroom() float64 {
	return max(g.Limit()*leastHeadroom, g.Limit()-(g.Demand.always()+g.Demand.Agent)/float64(g.CPUs))
}

// Ratio is the part of a cycle that the window may take while events are sampled: as much as the budget allows, because
// a longer window gives a smaller error.
func (g *Governor) Ratio() float64 {
	left := g.headroom()*fillTo*float64(g.CPUs) - g.Demand.frequent(Sampled, g.exits(), 0)
	return min(MaxRatio, max(MinRatio, left/max(g.Demand.frequent(Untimed, false, 1), 1e-9)))
}

// Decide sets the level for what happens now.
func (g *Governor) Decide(now time.Time, d Demand) Level {
	g.Demand = d
	if !g.Limited() {
		g.Level = Full
		return g.Level
	}
	ladder := g.ladder()
	at := slices.Index(ladder, g.Level)
	for at < len(ladder)-1 && g.Cost(ladder[at]) > g.headroom() {
		at++
	}
	switch {
	case ladder[at] != g.Level:
		g.since = time.Time{}
	case at > 0 && g.mayStepUp(now, ladder[at-1]):
		at--
	}
	g.Level = ladder[at]
	return g.Level
}

// mayStepUp tells whether a more expensive level has had headroom for long enough. At Off nothing is measured, so it is
// left now and then to measure.
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
