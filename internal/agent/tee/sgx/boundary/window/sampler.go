// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"math/rand/v2"
	"time"
)

// Intervals of sampling.
const (
	// Tick is how often files are checked against their budget.
	Tick = 100 * time.Millisecond

	shortestWindow = 20 * time.Millisecond
	// longestCycle limits the time between two windows, and so the smallest duty cycle.
	longestCycle = 10 * time.Second
	// memory is the time over which the event rate is averaged, by which the next cycle is planned.
	memory = 10 * time.Second
	// firstGuess times the budget is the assumed event rate until a window has measured it.
	firstGuess = 4
	// calm is the fraction of the budget below which every call is counted again.
	calm = 0.7
)

// action is a change of the probes.
type action uint8

const (
	stay   action = iota
	attach        // and open the gate
	detach        // close the gate, count the hits with their weight, and detach
)

// sampler decides when the probes of one file are attached, so that they cost at most a budget of hits a second.
// Below the budget they are always attached, and every call is counted. Above it time is divided into cycles with
// one window each. The lengths of cycle and window are fixed when a cycle begins, from the event rate before. The
// position of the window is random: it begins anywhere from its own length before the cycle to the end of the
// cycle, and is cut off at both. So every moment of the cycle is equally likely to be in the window, and a hit
// stands for (cycle + window) / window. The estimate is unbiased for any load (the Horvitz-Thompson estimator).
type sampler struct {
	random func() float64 // in [0, 1)

	exact bool
	open  bool // attached and counting

	// The cycle.
	start          time.Time
	cycle, window  time.Duration
	opens, closes  time.Time // planned
	opened         time.Time // actual
	done           bool      // the window has ended
	missed         float64   // fraction of the cycle by which the previous one began too late
	seen           float64   // hits that the cycle stands for
	detaching      time.Duration
	rate           float64 // hits a second, averaged
	dutyCycle      float64 // the fraction of time in which they are attached
	saved          float64 // hits that may be made now, at most the budget of a second
	cost, began    uint64  // counters of hits: at the last step, at the opening
	lastStep       time.Time
	before         float64 // rate of the previous cycle, negative if there is none
	total, squares float64 // sum of the hits of all cycles, and its variance
	cycles         int
}

func newSampler(now time.Time, budget float64) *sampler {
	return &sampler{random: rand.Float64, exact: true, lastStep: now, saved: budget, dutyCycle: 1, before: -1}
}

// step decides by the time, the counter of hits and the budget in hits a second, where 0 means no limit.
func (s *sampler) step(now time.Time, cost uint64, budget float64) action {
	hits, passed := float64(cost-s.cost), now.Sub(s.lastStep)
	s.cost, s.lastStep = cost, now
	if s.exact {
		if !s.open {
			return attach
		}
		s.saved = min(budget, s.saved+budget*passed.Seconds()) - hits
		if budget > 0 && s.saved < 0 {
			return detach
		}
		return stay
	}
	if end := s.start.Add(s.cycle); s.done && !now.Before(end) {
		s.finish()
		if s.rate < calm*budget || budget == 0 {
			s.exact, s.saved, s.dutyCycle, s.before = true, budget, 1, -1
			return attach
		}
		s.plan(end, now, budget)
	}
	switch {
	case !s.open && !s.done && !now.Before(s.opens):
		return attach
	case s.open && !now.Before(s.closes):
		return detach
	}
	return stay
}

// due returns when the next step is due.
func (s *sampler) due() time.Time {
	switch {
	case s.exact:
		return s.lastStep.Add(Tick)
	case s.open:
		return s.closes
	case s.done:
		return s.start.Add(s.cycle)
	}
	return s.opens
}

// entered notes that counting begins.
func (s *sampler) entered(now time.Time, cost uint64) {
	s.open, s.opened, s.began, s.cost, s.lastStep = true, now, cost, cost, now
}

// weight returns the number of calls that a hit represents when counting ends now. If the actual length of the window differs from
// the planned length, the hits are scaled to the planned length.
func (s *sampler) weight(now time.Time) float64 {
	if s.exact {
		return 1
	}
	planned, truly := s.closes.Sub(s.opens), max(now.Sub(s.opened), time.Microsecond)
	return (1 + s.missed) * float64(s.cycle+s.window) / float64(s.window) * float64(planned) / float64(truly)
}

// left notes when counting ended, and how long detaching took, because hits while detaching cost too.
func (s *sampler) left(end, now time.Time, cost uint64, budget float64) {
	s.open, s.done, s.detaching = false, true, now.Sub(end)
	if !s.exact {
		s.seen = float64(cost-s.began) * s.weight(end)
		return
	}
	s.exact, s.rate = false, firstGuess*budget
	s.plan(end, now, budget)
}

// plan chooses the window of the cycle that begins at start.
func (s *sampler) plan(start, now time.Time, budget float64) {
	s.missed = 0
	s.window = max(shortestWindow, s.detaching)
	part := min(1, budget/max(s.rate, 1))
	s.cycle = min(longestCycle, max(2*s.window, time.Duration(float64(s.window+s.detaching)/part)))
	if late := now.Sub(start); late > s.window { // the agent did not run for so long
		start, s.missed = now, float64(late)/float64(s.cycle)
	}
	s.start, s.done, s.seen = start, false, 0
	from := time.Duration(s.random()*float64(s.cycle+s.window)) - s.window
	s.opens = start.Add(max(0, from))
	s.closes = start.Add(min(s.cycle, from+s.window))
	s.dutyCycle = float64(s.window) / float64(s.cycle+s.window)
}

// finish adds a cycle to the total and estimates its variance. With a steady load the rates of neighbouring
// cycles differ only by chance, so half the square of their difference is the variance of one. With another load
// the error is overestimated.
func (s *sampler) finish() {
	seconds := s.cycle.Seconds() * (1 + s.missed)
	rate := s.seen / seconds
	s.total += s.seen
	s.cycles++
	if s.before >= 0 {
		s.squares += seconds * seconds * (rate - s.before) * (rate - s.before) / 2
	}
	s.before = rate
	forget := math.Exp(-seconds / memory.Seconds())
	s.rate = forget*s.rate + (1-forget)*rate
}

// deviation returns the relative standard error of all sampled hits. It returns false before enough cycles.
func (s *sampler) deviation() (float64, bool) {
	const enough = 10
	if s.cycles < enough || s.total == 0 {
		return 0, false
	}
	return math.Sqrt(s.squares) / s.total, true
}
