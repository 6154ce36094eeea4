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
)

// exposure is the CPU time of a group from which its event rates are computed.
type exposure struct {
	cpu            float64 // CPU time in windows, without that of counting
	missed, cycles float64 // CPU time that windows have missed, and the number of cycles
}

// learn adds the CPU time of a cycle.
func (e *exposure) learn(t CPUTime, weight, missed float64) {
	e.cpu = e.cpu*rateDecay + weight*t.window
	e.missed = e.missed*missedDecay + missed
	e.cycles = e.cycles*missedDecay + 1
}

// standardError returns the standard error, as CPU time per cycle, of the events that are estimated from event rates.
func (e *exposure) standardError() float64 {
	if e.cycles == 0 {
		return 0
	}
	return modelError * math.Abs(e.missed) / e.cycles
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
