// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"iter"
	"math/rand/v2"
)

// A window alone is biased. The agent needs a CPU to open it, and gets one later while others want them all, so windows
// fall where those rest; and a program that the processor limits makes fewer events while each of them costs more. But
// the CPU time of each group is known exactly, inside the window and outside. So the events of a cycle are estimated as
// those of the window, scaled up, plus what the group's event rate gives for the CPU time that the window had too little
// of (a difference estimator: Cochran, Sampling Techniques, 7.9). Where windows are fair the estimate is unbiased for any
// event rate. Where they are not, it is as good as the event rate is.

// Counters describes the words of a group that are sampled.
type Counters struct {
	Series []Series
	// Costs is what counting one event of each kind costs the group that it happens to, in nanoseconds.
	Costs []float64
	// Random returns a number in [0, 1), to round by; nil is the source of math/rand.
	Random func() float64
}

// Series are neighbouring words of one kind. The words of a kind share a Variance.
type Series struct {
	Kind        int
	First, Last int // the last one excluded
}

// Estimator estimates the events of one group. Its zero value counts every event.
//
// The counts of a cycle are known at its end. What is reported moves there evenly during the next cycle, so that a steady
// rate looks steady whenever it is read.
type Estimator struct {
	counters *Counters
	warmUp   bool   // everything is counted, and reported more slowly than it comes
	words    []word // nil while events are not sampled
	exposure
	offsets []uint64 // of what is reported to what was counted, since sampling ended; nil before
}

// word is a counter while it is sampled.
type word struct {
	settled  uint64  // what was counted at the end of the last cycle
	from, to uint64  // what is reported at the beginning and at the end of this cycle
	events   float32 // in windows, decayed: the numerator of the event rate
	carry    float32 // below zero: what was reported too much, because a counter never decreases
}

// Begin turns to estimates, which go on from what is reported.
func (e *Estimator) Begin(c *Counters, counted, reported []uint64, warmUp bool) {
	*e = Estimator{counters: c, warmUp: warmUp, words: make([]word, c.size())}
	for s, words := range e.series() {
		for i := range words {
			at := s.First + i
			words[i] = word{settled: counted[at], from: reported[at], to: reported[at]}
		}
	}
}

// Sampled tells whether events are sampled.
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

// Report sets what is reported from what was counted. The fraction is that of the last cycle's estimates.
func (e *Estimator) Report(counted, reported []uint64, fraction float64) {
	copy(reported, counted)
	if e.words == nil {
		e.reportOffsets(reported)
		return
	}
	for s, words := range e.series() {
		out, raw := reported[s.First:s.Last], counted[s.First:s.Last]
		for i := range words {
			w := &words[i]
			if e.warmUp {
				out[i] = w.from + behind(raw[i]-w.settled)
			} else {
				out[i] = w.from + uint64(float64(w.to-w.from)*fraction)
			}
		}
	}
}

func (e *Estimator) reportOffsets(reported []uint64) {
	if e.offsets == nil {
		return
	}
	offsets := e.offsets
	for _, s := range e.counters.Series {
		for w := s.First; w < s.Last; w++ {
			reported[w] += offsets[w-s.First]
		}
		offsets = offsets[s.Last-s.First:]
	}
}

// behind is how many of the events of the warm-up are reported by now: at its end those of one cycle are not.
func behind(n uint64) uint64 {
	return n * uint64(warmUp/Period) / uint64((warmUp+Period)/Period)
}

// Settle turns what was counted in a cycle into an estimate of what happened in it, and adds its error to the variances,
// which are those of the kinds.
func (e *Estimator) Settle(c Cycle, t CPUTime, counted []uint64, of []Variance) {
	t = t.without(e.spent(counted))
	for s, words := range e.series() {
		residual, rates := e.settle(words, counted[s.First:s.Last], c, t)
		of[s.Kind].add(residual*c.norm, rates*e.standardError()*c.norm)
	}
	if missed := t.cycle - c.factor*t.window; c.warmUp {
		e.learn(t, c.weight, 0)
	} else {
		e.learn(t, c.weight, missed*c.norm)
	}
	e.warmUp = false
}

// spent is what counting has cost the group in this cycle, in nanoseconds.
func (e *Estimator) spent(counted []uint64) (ns float64) {
	for s, words := range e.series() {
		n := uint64(0)
		for i := range words {
			n += counted[s.First+i] - words[i].settled
		}
		ns += float64(n) * e.counters.Costs[s.Kind]
	}
	return ns
}

// settle does so for a series. The residual is how far its counts are from what the event rates gave for the CPU time of
// the window; rates is the sum of the event rates.
func (e *Estimator) settle(words []word, counted []uint64, c Cycle, t CPUTime) (residual, rates float64) {
	missed := t.cycle - c.factor*t.window
	for i := range words {
		w := &words[i]
		n := counted[i] - w.settled
		if n == 0 && w.events == 0 && w.carry == 0 { // a call that the group does not make
			w.from = w.to
			continue
		}
		w.settled = counted[i]
		rate := e.rate(w)
		w.learn(c.weight * float64(n))
		if e.warmUp {
			w.from += behind(n)
			w.to += n
			continue
		}
		w.advance(float64(n)*c.factor+rate*missed, e.counters.random)
		residual += c.factor * (float64(n) - rate*t.window)
		rates += rate
	}
	return residual, rates
}

// advance lets what is reported grow by an estimate. An estimate below zero is carried to the next cycle.
func (w *word) advance(estimate float64, random func() float64) {
	w.from = w.to
	estimate += float64(w.carry)
	w.carry = float32(min(0, estimate))
	if estimate > 0 {
		w.to += roundRandomly(estimate, random())
	}
}

// Hold keeps what is reported where the last cycle has brought it.
func (e *Estimator) Hold() {
	for i := range e.words {
		e.words[i].from = e.words[i].to
	}
}

// End turns back to counting: from here on each event is one.
func (e *Estimator) End(counted []uint64) {
	offsets := make([]uint64, 0, len(e.words))
	for s, words := range e.series() {
		for i := range words {
			offsets = append(offsets, words[i].to-counted[s.First+i])
		}
	}
	*e = Estimator{counters: e.counters, offsets: offsets}
}

// roundRandomly rounds up with a probability that is the fraction. Rounded to the nearest, a counter of rare events, of
// which each stands for 10.4, would always be low by 4 %.
func roundRandomly(v, random float64) uint64 {
	n := uint64(v)
	if random < v-float64(n) {
		n++
	}
	return n
}
