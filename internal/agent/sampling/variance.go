// SPDX-License-Identifier: Apache-2.0

package sampling

import "math"

const (
	// caution is a factor on the variance, which is itself an estimate from few numbers.
	caution = 1.25
	// isolated is the factor by which a difference must exceed its neighbours to count as a change of the level.
	isolated = 5
	// few is the number of observations that are added to those of a minute, because the variance of rare events comes
	// from the few that a window contained. Without any, the interval reaches up to the mean of a Poisson distribution
	// that is zero in 6 % of cases: 1.96 * sqrt(few) = 2.8.
	few = 2
	// rateError is the relative standard error of the rate of all groups, for a group without any event in windows.
	rateError = 2
	// minuteKeeps is applied in each cycle to the data of the last minute.
	minuteKeeps = 1 - 1.0/60
	// historyKeeps is applied in each cycle to the data of the last ten minutes.
	historyKeeps = 1 - 1.0/600
)

// Variance is the error of the estimates of one kind of events. Groups whose estimates are added up share one.
type Variance struct {
	last     float64    // residuals of the last cycle
	inWindow float64    // the same in events of its window
	cycle    spread     // of this cycle
	steps    [2]float64 // differences of the residuals of the last cycles, the newest first
	cycles   int
	sum      float64
	growing  float64 // the last increase of sum

	// Sums that decay. From the last minute: cycles in which events may have been missed. From the last ten minutes: the
	// variance from residuals in events of a window, the number of windows with events, their events, and the CPU time in
	// windows.
	missing                    float64
	scatter, hits, events, cpu float64
}

// spread has the errors of the estimates of a cycle.
type spread struct {
	residual   float64
	modelError float64 // standard error of the events that were estimated from event rates
	events     float64 // in the window
	cpu        float64 // CPU time in the window
	missed     float64 // CPU time outside the window
}

func (s *spread) add(o spread) {
	s.residual += o.residual
	s.modelError += o.modelError
	s.events += o.events
	s.cpu += o.cpu
	s.missed += o.missed
}

// Sum returns the variance of the number of events since sampling began. It returns false before the first sampled
// cycle.
func (v *Variance) Sum() (float64, bool) { return v.sum, v.cycles > 0 }

// Include adds the errors of this cycle of another variance, which has not ended the cycle. The windows of a cycle are
// the same for all groups. So the errors of groups are correlated, and their sum has a variance of its own.
func (v *Variance) Include(o *Variance) { v.cycle.add(o.cycle) }

// EndCycle ends a cycle. The phases of the windows are random and independent, so the variances of cycles add up.
//
//   - Half the squared difference of the residuals of two cycles estimates the variance of one. This is right for a
//     steady load. It is too large, never too small, for a load that changes from cycle to cycle (Wolter, Introduction to
//     Variance Estimation, on one unit per stratum), so single changes of the level are recognised. The variance of a
//     minute is an estimate from 60 numbers. For loads in short bursts these are far from normal, so the result is
//     multiplied by caution.
//   - A window that contained no event does not show how many were missed. So the variance of a few windows with
//     events is added, spread over the last minute (Agresti and Coull, The American Statistician 52(2), 1998, add four
//     observations). As long as no window contained events, the rate of all groups per CPU time is assumed.
//   - The model error has the same sign in each cycle. So its values, and not their squares, add up over
//     modelErrorCycles.
func (v *Variance) EndCycle(c Cycle, rate float64) {
	s := v.cycle
	v.cycle = spread{}
	if !c.hasSampled() {
		return
	}
	if c.unseen > 0 { // events are extrapolated from the last cycle
		v.sum += 2 * v.growing * c.unseen * c.unseen
		return
	}
	scatter := 0.0
	if v.cycles > 0 {
		scatter = v.scatterOf(s.residual - v.last)
	}
	v.growing = caution*scatter + v.ofFew(c, s, rate) + modelErrorCycles*s.modelError*s.modelError
	v.sum += v.growing
	v.cycles++
	v.last = s.residual
}

// scatterOf returns the variance of the cycle before, for which the difference after it must be known. A large difference
// between two small ones is a change of the level, in one cycle. The window is before the change or after it, with an error
// of u or 1-u of the difference. Its variance is a sixth of the square, for changes and windows at uniform random times.
func (v *Variance) scatterOf(d float64) float64 {
	before, is := v.steps[1], v.steps[0]
	v.steps = [2]float64{d, is}
	if math.Abs(is) > isolated*max(math.Abs(before), math.Abs(d)) {
		return is * is / 6
	}
	return is * is / 2
}

// ofFew returns the variance that is added because few windows contain events.
func (v *Variance) ofFew(c Cycle, s spread, rate float64) float64 {
	inWindow := s.residual / c.factor
	d := inWindow - v.inWindow
	v.inWindow = inWindow
	for _, sum := range []struct {
		of   *float64
		with float64
	}{{&v.scatter, d * d / 2}, {&v.hits, min(1, s.events)}, {&v.events, s.events}, {&v.cpu, s.cpu}} {
		*sum.of = *sum.of*historyKeeps + sum.with
	}
	v.missing *= minuteKeeps
	if s.missed <= 0 {
		return 0
	}
	v.missing++
	one := c.factor * (c.factor - 1) // the variance of one event
	if v.hits > 0 {
		return few * one * max(1, v.scatter/v.hits) / v.missing
	}
	// The error has the same sign in each cycle.
	assumed := rateError * rate * s.missed
	return max(few*one/v.missing, assumed*assumed*v.missing)
}

// Rate returns the number of events per nanosecond of CPU time.
func (v *Variance) Rate() float64 {
	if v.cpu < leastCPU {
		return 0
	}
	return v.events / v.cpu
}
