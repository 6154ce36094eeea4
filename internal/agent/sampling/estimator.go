// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
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
	// Off is set while nothing counts these words. It may change before Begin only.
	Off bool
}

// Estimator estimates the events of one group. Its zero value counts every event.
//
// The estimates of a cycle are known at its end. The reported counts grow by them evenly during the next cycle, so that
// a steady rate looks steady at any time of reading. So they are one cycle late. At the beginning they are not late: they
// grow by a forecast, which is as many events as in the last cycle, and differences are corrected afterwards. The delay
// grows slowly to one cycle (Cycle.ahead), because a sudden delay looks like a lower rate.
//
// A group makes few of the system calls. So only words that were not zero are kept.
type Estimator struct {
	counters *Counters
	sampling bool   // events are sampled
	warmUp   bool   // everything is counted and reported
	words    []word // in ascending order; the counted and the reported number of each other word is zero
	exposure
	offsets []uint64 // reported minus counted numbers, since sampling ended; nil before
}

// word is a sampled counter.
type word struct {
	at       int32   // its place among the words of the group
	counted  uint64  // counted number at the end of the last cycle
	from, to uint64  // reported numbers at the beginning and at the end of this cycle
	events   float32 // decayed number of events in windows, the numerator of the event rate
	last     float32 // estimate for the last cycle
	carry    float32 // events that are estimated and not in to; below zero if to is ahead of the estimate
}

// Begin begins to estimate. The estimates continue from the reported numbers.
func (e *Estimator) Begin(c *Counters, counted, reported []uint64, warmUp bool) {
	*e = Estimator{counters: c, sampling: true, warmUp: warmUp}
	for _, s := range c.Series {
		for at := s.First; at < s.Last; at++ {
			if counted[at]|reported[at] != 0 {
				e.words = append(e.words, word{at: int32(at), counted: counted[at], from: reported[at], to: reported[at]})
			}
		}
	}
}

// keep adds the words that are not zero any more.
func (e *Estimator) keep(counted []uint64) {
	next := 0 // in e.words
	for _, s := range e.counters.Series {
		for i, n := range counted[s.First:s.Last] {
			if n == 0 {
				continue
			}
			at := int32(s.First + i)
			for next < len(e.words) && e.words[next].at < at {
				next++
			}
			if next == len(e.words) || e.words[next].at != at {
				e.words = slices.Insert(e.words, next, word{at: at})
			}
		}
	}
}

// Sampled reports whether events are sampled.
func (e *Estimator) Sampled() bool { return e.sampling }

// series lists the series with their kept words.
func (e *Estimator) series() iter.Seq2[Series, []word] {
	return func(yield func(Series, []word) bool) {
		rest := e.words
		for _, s := range e.counters.Series {
			n := 0
			for n < len(rest) && int(rest[n].at) < s.Last {
				n++
			}
			if !yield(s, rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}

func (c *Counters) random() float64 {
	if c.Random != nil {
		return c.Random()
	}
	return rand.Float64() //nolint:gosec // no secret
}

// Exact reports whether the reported numbers are the counted ones.
func (e *Estimator) Exact() bool { return !e.sampling && e.offsets == nil }

// Report computes the reported numbers from the counted ones. The fraction is the reported part of the last cycle's
// estimates.
func (e *Estimator) Report(counted, reported []uint64, fraction float64) {
	from := 0
	for _, s := range e.sampled() {
		copy(reported[from:s.First], counted[from:s.First])
		from = s.Last
	}
	copy(reported[from:], counted[from:])
	switch {
	case !e.sampling:
		e.reportOffsets(counted, reported)
		return
	case e.warmUp:
		e.keep(counted)
	}
	for i := range e.words {
		w := &e.words[i]
		if e.warmUp {
			reported[w.at] = max(reported[w.at], w.from+counted[w.at]-w.counted)
		} else {
			reported[w.at] = max(reported[w.at], w.from+uint64(float64(w.to-w.from)*fraction))
		}
	}
}

// sampled lists the series whose reported numbers differ from the counted ones.
func (e *Estimator) sampled() []Series {
	if e.Exact() {
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
	e.keep(counted)
	with := t.cycle
	t = t.without(e.spent(counted))
	for s, words := range e.series() {
		if s.Off {
			e.skip(words, counted)
			continue
		}
		residual, rates, events := e.endCycle(words, counted, c, t)
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

// skip ends the cycle of a series that nothing counts. A last few events may have been counted, and reported, before its program was
// detached.
func (e *Estimator) skip(words []word, counted []uint64) {
	for i := range words {
		w := &words[i]
		if e.warmUp {
			w.to += counted[w.at] - w.counted
		}
		w.counted, w.from = counted[w.at], w.to
	}
}

// spent returns the cost of counting in this cycle, in nanoseconds.
func (e *Estimator) spent(counted []uint64) (ns float64) {
	for s, words := range e.series() {
		n := uint64(0)
		for i := range words {
			n += counted[words[i].at] - words[i].counted
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
		n := counted[w.at] - w.counted
		if n == 0 && w.events == 0 && w.carry == 0 { // a call that the group does not make
			w.from = w.to
			continue
		}
		w.counted = counted[w.at]
		if c.unseen > 0 {
			w.finish(float64(w.last)*c.unseen, e.counters.random)
			continue
		}
		rate := e.rate(w)
		w.learn(c.weight * float64(n))
		events += n
		if e.warmUp {
			w.last = float32(float64(n) * c.norm)
			w.to += n // all of these are reported
			w.advance(0, c.ahead*float64(w.last), e.counters.random)
			if c.final {
				w.last = 0
			}
			continue
		}
		estimate := float64(n)*c.factor + rate*missed
		w.last = float32(estimate * c.norm)
		if c.final {
			w.finish(estimate, e.counters.random)
			w.last = 0 // a later cycle without a window repeats nothing of a group that has ended
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
func (w *word) finish(estimate float64, random func() float64) {
	sum := estimate + float64(w.carry)
	down := math.Floor(sum)
	due := int64(down) + int64(roundRandomly(sum-down, random()))
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
	var offsets []uint64
	next := 0 // in e.words
	for _, s := range e.counters.Series {
		for at := s.First; at < s.Last; at++ {
			offset := -counted[at]
			if next < len(e.words) && int(e.words[next].at) == at {
				offset += e.words[next].to
				next++
			}
			offsets = append(offsets, offset)
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
