// SPDX-License-Identifier: Apache-2.0

package sampling

import "math"

const (
	// rateDecay is applied to a group's event rates in each cycle: they are those of about twenty seconds.
	rateDecay = 0.95
	// leastCPU is the CPU time in windows, in nanoseconds, below which an event rate is not known.
	leastCPU = 5e6
	// missedDecay is applied to the CPU time that windows miss, which is known from many cycles only.
	missedDecay = 0.98
	// modelError is the standard error of the events that an event rate stands in for, as a share of them: what a call
	// costs differs from program to program, and the CPU time that windows miss may be spent in another way than the time
	// that they see. The error has the same sign in each cycle, so errors add up and not their squares: over
	// modelErrorCycles.
	modelError, modelErrorCycles = 0.25, 60
)

// exposure is the CPU time of a group that its event rates are known from.
type exposure struct {
	cpu            float64 // in windows, without that of counting
	missed, cycles float64 // CPU time that windows had too little of, and in how many cycles
}

// learn takes the CPU time of a cycle.
func (e *exposure) learn(t CPUTime, weight, missed float64) {
	e.cpu = e.cpu*rateDecay + weight*t.window
	e.missed = e.missed*missedDecay + missed
	e.cycles = e.cycles*missedDecay + 1
}

// standardError is that of the CPU time that event rates stand in for in each cycle.
func (e *exposure) standardError() float64 {
	if e.cycles == 0 {
		return 0
	}
	return modelError * math.Abs(e.missed) / e.cycles
}

// rate is how many events of a word happen in a nanosecond of CPU time.
func (e *exposure) rate(w *word) float64 {
	if e.cpu < leastCPU {
		return 0
	}
	return float64(w.events) / e.cpu
}

// learn takes the events of a cycle. A call that was last made minutes ago is forgotten.
func (w *word) learn(events float64) {
	const least = 1e-3
	if w.events = w.events*rateDecay + float32(events); w.events < least {
		w.events = 0
	}
}
