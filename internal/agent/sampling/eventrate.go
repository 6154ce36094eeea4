// SPDX-License-Identifier: Apache-2.0

package sampling

import "math"

const (
	// rateDecay is applied to a group's event rates in each cycle. So the rates are means of about twenty seconds.
	rateDecay = 0.95
	// leastCPU is the minimum CPU time in windows, in nanoseconds, for a known event rate.
	leastCPU = 5e6
	// missedDecay is applied to the CPU time that windows miss, which needs many cycles to estimate.
	missedDecay = 0.98
	// modelError is the relative standard error of events that are estimated from an event rate. The cost of a call
	// differs between programs, and the CPU time that windows miss may have other event rates than the time in windows.
	// The error has the same sign in each cycle, so errors, and not their squares, add up over modelErrorCycles.
	modelError, modelErrorCycles = 0.25, 60
	// costError is the relative standard error of the cost of counting an event. It is measured in a loop, and differs between
	// programs.
	costError = 0.15
)

// exposure is the CPU time of a group from which its event rates are computed.
type exposure struct {
	cpu                     float64 // CPU time in windows, without that of counting
	missed, squares, cycles float64 // CPU time that windows have missed, its squares, and the number of cycles
	displaced               float64 // CPU time of counting, as if events outside of windows were counted too
	outside                 float64 // CPU time outside of windows, as predicted from that in windows
}

// learn adds the CPU time of a cycle.
func (e *exposure) learn(t CPUTime, weight, missed, displaced, outside float64) {
	e.cpu = e.cpu*rateDecay + weight*t.window
	e.missed = e.missed*missedDecay + missed
	e.displaced = e.displaced*missedDecay + displaced
	e.outside = e.outside*missedDecay + outside
	e.squares = e.squares*missedDecay + missed*missed
	e.cycles = e.cycles*missedDecay + 1
}

// standardError returns the standard error, as CPU time per cycle, of the events that are estimated from event rates.
//
//   - The cost of counting is subtracted from the CPU time of windows. Its error is one of the CPU time that they miss, and of
//     the event rate, by which that time is multiplied.
//   - The rest of what windows miss has other event rates. Only its mean counts. That of a single cycle is chance, whose error is
//     in the residuals.
func (e *exposure) standardError() float64 {
	if e.cycles == 0 {
		return 0
	}
	mean := e.missed / e.cycles
	chance := (e.squares/e.cycles - mean*mean) / max(1, 2*e.cycles-1) // variance of a mean whose weights decay
	missed, displaced := math.Sqrt(max(0, mean*mean-chance)), e.displaced/e.cycles
	ofRate := 1.0
	if e.outside > 0 && e.missed > 0 {
		ofRate += min(1, e.missed/e.outside)
	}
	return costError*displaced*ofRate + modelError*max(0, missed-displaced)
}

// rate returns the number of events of a word per nanosecond of CPU time.
func (e *exposure) rate(w *word) float64 {
	if e.cpu < leastCPU {
		return 0
	}
	return float64(w.events) / e.cpu
}

// learn adds the events of a cycle. The rate of a call that was last made minutes ago becomes zero.
func (w *word) learn(events float64) {
	const least = 1e-3
	if w.events = w.events*rateDecay + float32(events); w.events < least {
		w.events = 0
	}
}
