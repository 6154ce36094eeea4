// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// arrivals returns how many calls happen between two times, in seconds since the start.
type arrivals func(from, to float64) float64

func steady(rate float64) arrivals {
	return func(from, to float64) float64 { return rate * (to - from) }
}

// bursts makes all its calls in a part of each period. With a period of a second, it has the period of a cycle.
func bursts(rate, period, part float64) arrivals {
	until := func(t float64) float64 {
		whole := math.Floor(t / period)
		return rate * (whole*part*period + math.Min(t-whole*period, part*period))
	}
	return func(from, to float64) float64 { return until(to) - until(from) }
}

// walk has another rate in each tenth of a second.
func walk(seed uint64, mean float64) arrivals {
	r := rand.New(rand.NewPCG(seed, 1))
	sums := []float64{0}
	for range 6000 {
		sums = append(sums, sums[len(sums)-1]+mean*0.1*2*r.Float64())
	}
	until := func(t float64) float64 {
		i := int(t * 10)
		return sums[i] + (sums[i+1]-sums[i])*(t*10-float64(i))
	}
	return func(from, to float64) float64 { return until(to) - until(from) }
}

// worker is a program that may be limited by the processor: it does one thing after another, each for a random time.
type worker struct {
	does     []task
	low      float64 // by how much it may be counted low
	blocking bool    // a window opens only at the end of what needs a CPU
	random   *rand.Rand
	at       time.Duration // since the start
	until    time.Duration // of its task
	now      int
	made     float64 // calls, since the start
	counting float64 // what counting a call adds, in nanoseconds; 0 is countTakes
}

// task is a way to spend time. It lasts at most a fixed time. It makes calls at full speed, or at a rate, or none. In the rest of
// its time it computes or sleeps.
type task struct {
	most    time.Duration
	fast    bool
	rate    float64 // calls per second
	compute bool
	work    float64 // CPU time beside each call, in nanoseconds, of a rate
}

// The time of a call, and the time that counting it adds, in nanoseconds.
const (
	callTakes  = 170.0
	countTakes = 110.0
)

func (w *worker) left(now time.Duration) time.Duration {
	if d := w.does[w.now]; d.fast || d.compute {
		return max(0, w.until-now)
	}
	return 0
}

// pass advances the worker by d. It returns how many calls were made and for how many nanoseconds the program has run.
func (w *worker) pass(d time.Duration, counted bool) (made, ran float64) {
	cost := callTakes
	if w.counting == 0 {
		w.counting = countTakes
	}
	if counted {
		cost += w.counting
	}
	for end := w.at + d; w.at < end; {
		if w.at >= w.until {
			w.now = (w.now + 1) % len(w.does)
			w.until = w.at + time.Duration(w.random.Float64()*float64(w.does[w.now].most))
		}
		does, to := w.does[w.now], min(end, max(w.until, w.at+1))
		passed := float64(to - w.at)
		w.at = to
		switch {
		case does.fast:
			made += passed / cost
			ran += passed
			w.until += time.Duration(passed * (1 - callTakes/cost)) // the number of calls is fixed
		case does.compute:
			ran += passed
		default:
			made += does.rate * passed / 1e9
			ran += does.rate * passed / 1e9 * (cost + does.work)
		}
	}
	w.made += made
	return made, ran
}

// simulation samples one group on a clock of its own, with one word.
type simulation struct {
	cycle    *DutyCycle
	counters Counters
	group    Estimator
	variance []Variance
	counted  []uint64
	reported []uint64

	now      time.Time
	began    time.Time
	on       bool // attached
	closed   bool
	refused  bool // attaching fails
	load     arrivals
	rate     float64 // of other groups, per nanosecond
	takes    float64 // CPU time of an event of the load, in nanoseconds
	worker   *worker // instead of load
	events   float64 // that were counted
	ran      uint64
	attached time.Duration
}

func (s *simulation) Attach() error {
	if s.refused {
		return errors.New("refused")
	}
	s.pass(400 * time.Microsecond)
	if s.worker != nil && s.worker.blocking {
		s.pass(s.worker.left(s.now.Sub(s.began)))
	}
	s.on = true
	return nil
}

func (s *simulation) Detach() error { s.on = false; return nil }
func (s *simulation) Count(on bool) { s.closed = !on }
func (s *simulation) Snapshot()     {}
func (s *simulation) CPUTimes(report func(int, uint64)) {
	report(0, s.ran)
}

func (s *simulation) pass(d time.Duration) {
	from := s.now.Sub(s.began).Seconds()
	s.now = s.now.Add(d)
	counting := s.on && !s.closed
	if s.worker != nil {
		made, ran := s.worker.pass(d, s.on)
		s.ran += uint64(ran)
		if counting {
			s.events += made
		}
	} else {
		made := max(0, s.load(from, s.now.Sub(s.began).Seconds())) // floating point may give less than zero
		s.ran += uint64(made * s.takes)
		if counting {
			s.events += made
		}
	}
	if counting {
		s.attached += d
	}
	s.counted[0] = uint64(s.events)
}

func simulate(l arrivals, seed uint64) *simulation {
	s := &simulation{
		now: time.Unix(1000, 0), began: time.Unix(1000, 0), load: l, on: true,
		variance: make([]Variance, 1), counted: make([]uint64, 1), reported: make([]uint64, 1),
		counters: Counters{Series: []Series{{Kind: 0, First: 0, Last: 1}}, Costs: []float64{120}},
	}
	s.cycle = NewDutyCycle(s, 1)
	s.cycle.now, s.cycle.phase = func() time.Time { return s.now }, rand.New(rand.NewPCG(seed, 2)).Float64
	s.begin(false)
	return s
}

func (s *simulation) begin(warmUp bool) {
	s.group.Begin(&s.counters, s.counted, s.reported, warmUp)
	s.cycle.Begin(warmUp)
}

func (s *simulation) report() float64 {
	s.group.Report(s.counted, s.reported, s.cycle.Fraction())
	return float64(s.reported[0])
}

// atEnd is what is reported at the end of this cycle.
func (s *simulation) atEnd() float64 {
	s.group.Report(s.counted, s.reported, 1)
	return float64(s.reported[0])
}

func (s *simulation) endCycle() {
	c, ok := s.cycle.EndCycle()
	if !ok {
		s.group.Hold()
		return
	}
	s.group.EndCycle(c, s.cycle.Take(0), s.counted, s.variance)
	s.variance[0].EndCycle(c, s.rate)
}

// step advances the clock to the next step and performs it.
func (s *simulation) step() (ended bool, err error) {
	s.pass(max(0, s.cycle.Next().Sub(s.now)))
	if ended, err = s.cycle.Step(); ended {
		s.endCycle()
	}
	return ended, err
}

// run advances the clock until this many cycles have ended.
func (s *simulation) run(t *testing.T, cycles int) {
	t.Helper()
	for cycles > 0 {
		ended, err := s.step()
		if err != nil {
			t.Fatal(err)
		}
		if ended {
			cycles--
		}
	}
}

// end goes back to counting every event.
func (s *simulation) end(t *testing.T) {
	t.Helper()
	if err := s.cycle.Finish(); err != nil {
		t.Fatal(err)
	}
	s.endCycle()
	s.cycle.End()
	s.group.End(s.counted)
}

// until advances the clock to a time and performs all steps before it.
func (s *simulation) until(end time.Time) {
	for !s.cycle.Next().After(end) {
		_, _ = s.step()
	}
	s.pass(max(0, end.Sub(s.now)))
}

func (s *simulation) sum() float64 {
	sum, _ := s.variance[0].Sum()
	return sum
}

func (s *simulation) truth() float64 { return s.load(0, s.now.Sub(s.began).Seconds()) }
