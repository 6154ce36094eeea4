// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"iter"
	"math"
	"math/rand/v2"
)

// Scaling up a window alone is biased. The agent needs a CPU to open the window. On a busy machine it gets one only
// when other threads pause, so windows fall into their pauses. And a program that the processor limits makes fewer
// events in the window, where each event costs more. But the CPU time of each group is known exactly, inside the window
// and outside. So the estimate is the number of events in the window, scaled up, plus the event rate times the CPU time
// that the window has missed (a difference estimator: Cochran, Sampling Techniques, 7.9). If the window is not biased,
// the estimate is unbiased for any event rate. Otherwise its error is that of the event rate.

// Counters describes the sampled words of a group.
type Counters struct {
	Series []Series
	// Costs is the cost of counting one event of each kind, in nanoseconds.
	Costs []float64
	// Random returns a number in [0, 1) for random rounding. If it is nil, math/rand is used.
	Random func() float64
}

// Series is a range of words of one kind. The words of a kind share a Variance.
type Series struct {
	Kind        int
	First, Last int // Last is excluded
}

// Estimator estimates the events of one group. Its zero value counts every event.
//
// The estimates of a cycle are known at its end. The reported counts grow by them evenly during the next cycle, so that
// a steady rate looks steady at any time of reading. So they are one cycle late. At the beginning they are not late: they
// grow by a forecast, which is as many events as in the last cycle, and differences are corrected afterwards. The delay
// grows slowly to one cycle (Cycle.ahead), because a sudden delay looks like a lower rate.
type Estimator struct {
	counters *Counters
	warmUp   bool   // everything is counted and reported
	words    []word // nil while events are not sampled
	exposure
	offsets []uint64 // reported minus counted numbers, since sampling ended; nil before
}

// word is a sampled counter.
type word struct {
	counted  uint64  // counted number at the end of the last cycle
	from, to uint64  // reported numbers at the beginning and at the end of this cycle
	events   float32 // decayed number of events in windows, the numerator of the event rate
	last     float32 // estimate for the last cycle
	carry    float32 // events that are estimated and not in to; below zero if to is ahead of the estimate
}

// Begin begins to estimate. The estimates continue from the reported numbers.
func (e *Estimator) Begin(c *Counters, counted, reported []uint64, warmUp bool) {
	*e = Estimator{counters: c, warmUp: warmUp, words: make([]word, c.size())}
	for s, words := range e.series() {
		for i := range words {
			at := s.First + i
			words[i] = word{counted: counted[at], from: reported[at], to: reported[at]}
		}
	}
}

// Sampled reports whether events are sampled.
func (e *Estimator) Sampled() bool { return e.words != nil }

// series lists the series with their words.
func (e *Estimator) series() iter.Seq2[Series, []word] {
	return func(yield func(Series, []word) bool) {
		rest := e.words
		for _, s := range e.counters.Series {
			n := s.Last - s.First
			if !yield(s, rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

func (c *Counters) size() (n int) {
	for _, s := range c.Series {
		n += s.Last - s.First
	}
	return n
}

func (c *Counters) random() float64 {
	if c.Random != nil {
		return c.Random()
	}
	return rand.Float64() //nolint:gosec // no secret
}

// Report computes the reported numbers from the counted ones. The fraction is the reported part of the last cycle's
// estimates.
func (e *Estimator) Report(counted, reported []uint64, fraction float64) {
	from := 0
	for _, s := range e.sampled() {
		copy(reported[from:s.First], counted[from:s.First])
		from = s.Last
	}
	copy(reported[from:], counted[from:])
	if e.words == nil {
		e.reportOffsets(counted, reported)
		return
	}
	for s, words := range e.series() {
		out, raw := reported[s.First:s.Last], counted[s.First:s.Last]
		for i := range words {
			w := &words[i]
			if e.warmUp {
				out[i] = max(out[i], w.from+raw[i]-w.counted)
			} else {
				out[i] = max(out[i], w.from+uint64(float64(w.to-w.from)*fraction))
			}
		}
	}
}

// sampled lists the series whose reported numbers differ from the counted ones.
func (e *Estimator) sampled() []Series {
	if e.words == nil && e.offsets == nil {
		return nil
	}
	return e.counters.Series
}

// reportOffsets reports numbers after sampling. A number that was ahead of the estimate does not decrease.
func (e *Estimator) reportOffsets(counted, reported []uint64) {
	offsets := e.offsets
	for _, s := range e.sampled() {
		for w := s.First; w < s.Last; w++ {
			reported[w] = max(reported[w], counted[w]+offsets[w-s.First])
		}
		offsets = offsets[s.Last-s.First:]
	}
}

// EndCycle estimates the events of a cycle from those counted in it, and adds the error to the variances, which are
// indexed by kind.
func (e *Estimator) EndCycle(c Cycle, t CPUTime, counted []uint64, of []Variance) {
	with := t.cycle
	t = t.without(e.spent(counted))
	for s, words := range e.series() {
		residual, rates, events := e.endCycle(words, counted[s.First:s.Last], c, t)
		of[s.Kind].cycle.add(spread{
			residual: residual * c.norm, modelError: rates * e.standardError() * c.norm,
			events: float64(events), cpu: t.window, missed: t.cycle - t.window,
		})
	}
	if c.unseen > 0 {
		return
	}
	if missed, spent := t.cycle-c.factor*t.window, with-t.cycle; c.warmUp {
		e.learn(t, c.weight, 0, 0, 0)
	} else {
		e.learn(t, c.weight, missed*c.norm, (c.factor-1)*spent*c.norm, (c.factor-1)*t.window*c.norm)
	}
	e.warmUp = false
}

// spent returns the cost of counting in this cycle, in nanoseconds.
func (e *Estimator) spent(counted []uint64) (ns float64) {
	for s, words := range e.series() {
		n := uint64(0)
		for i := range words {
			n += counted[s.First+i] - words[i].counted
		}
		ns += float64(n) * e.counters.Costs[s.Kind]
	}
	return ns
}

// endCycle ends the cycle of a series. The residual is the difference between its counts and the numbers that the event rates
// predict for the CPU time of the window. rates is the sum of the event rates. events is the number of events.
func (e *Estimator) endCycle(words []word, counted []uint64, c Cycle, t CPUTime) (residual, rates float64, events uint64) {
	missed := t.cycle - c.factor*t.window
	for i := range words {
		w := &words[i]
		n := counted[i] - w.counted
		if n == 0 && w.events == 0 && w.carry == 0 { // a call that the group does not make
			w.from = w.to
			continue
		}
		w.counted = counted[i]
		if c.unseen > 0 {
			w.finish(float64(w.last) * c.unseen)
			continue
		}
		rate := e.rate(w)
		w.learn(c.weight * float64(n))
		events += n
		if e.warmUp {
			w.last = float32(float64(n) * c.norm)
			w.to += n // all of these are reported
			w.advance(0, c.ahead*float64(w.last), e.counters.random)
			continue
		}
		estimate := float64(n)*c.factor + rate*missed
		w.last = float32(estimate * c.norm)
		if c.final {
			w.finish(estimate)
		} else {
			w.advance(estimate, c.ahead*float64(w.last), e.counters.random)
		}
		residual += c.factor * (float64(n) - rate*t.window)
		rates += rate
	}
	return residual, rates, events
}

// advance adds an estimate and a forecast to the reported number. A negative sum is carried to the next cycle, because a counter
// never decreases.
func (w *word) advance(estimate, forecast float64, random func() float64) {
	w.from = w.to
	due := estimate + float64(w.carry)
	step := due + max(0, forecast)
	if step > 0 {
		w.to += roundRandomly(step, random())
	} else {
		step = 0
	}
	w.carry = float32(due - step)
}

// finish adds the last estimate. Nothing is forecast, so the number may be below the reported one, and is at least zero.
func (w *word) finish(estimate float64) {
	due := int64(math.Round(estimate + float64(w.carry)))
	if due < 0 && uint64(-due) > w.to {
		w.to = 0
	} else {
		w.to += uint64(due)
	}
	w.from, w.carry = w.to, 0
}

// Hold keeps the reported numbers constant until the next cycle ends.
func (e *Estimator) Hold() {
	for i := range e.words {
		e.words[i].from = e.words[i].to
	}
}

// End returns to counting each event.
func (e *Estimator) End(counted []uint64) {
	offsets := make([]uint64, 0, len(e.words))
	for s, words := range e.series() {
		for i := range words {
			offsets = append(offsets, words[i].to-counted[s.First+i])
		}
	}
	*e = Estimator{counters: e.counters, offsets: offsets}
}

// roundRandomly rounds up with the fraction as probability. With rounding to the nearest, a counter of rare events that
// are scaled by 10.4 would always be 4 % too low.
func roundRandomly(v, random float64) uint64 {
	n := uint64(v)
	if random < v-float64(n) {
		n++
	}
	return n
}
