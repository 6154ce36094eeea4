// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/watch"
)

// arrivals say how many calls happen from one moment to another, in seconds since the start.
type arrivals func(from, to float64) float64

func steady(rate float64) arrivals {
	return func(from, to float64) float64 { return rate * (to - from) }
}

// bursts has all its calls in a part of each period: of a second, it has the period of a cycle.
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

// simulation samples a load with the real code on a clock of its own.
type simulation struct {
	slots    *slots
	slot     *slot
	now      time.Time
	on       bool
	load     arrivals
	began    time.Time
	counted  float64 // by the kernel side
	attached time.Duration
	refused  bool     // attaching fails
	working  *working // in place of load
}

func (s *simulation) Detach(string) error { s.on = false; return nil }
func (s *simulation) Reattach(string) error {
	if s.refused {
		return errors.New("refused")
	}
	s.pass(400 * time.Microsecond)
	if s.working != nil && s.working.inTheWay {
		s.pass(s.working.left(s.now.Sub(s.began)))
	}
	s.on = true
	return nil
}

func (s *simulation) pass(d time.Duration) {
	from := s.now.Sub(s.began).Seconds()
	s.now = s.now.Add(d)
	if s.working != nil {
		made, ran := s.working.pass(d, s.on)
		s.slots.kernel.rows[slotFirst].RunNS += uint64(ran)
		if s.on && s.slots.duty.control.Closed == 0 {
			s.counted += made
			s.attached += d
		}
	} else if s.on && s.slots.duty.control.Closed == 0 {
		s.counted += max(0, s.load(from, s.now.Sub(s.began).Seconds())) // which floating point may not see
		s.attached += d
	}
	s.slot.raw.Calls[0] = uint64(s.counted)
}

func simulate(t *testing.T, l arrivals, seed uint64) *simulation {
	t.Helper()
	k := made(t)
	sl := newSlots(k, 8)
	s := &simulation{slots: sl, now: time.Unix(1000, 0), began: time.Unix(1000, 0), load: l, on: true}
	w := sl.registry.Join(workload.Identity{Name: "it", Kind: workload.Program}, s.now)
	s.slot = &slot{number: slotFirst, owner: w}
	sl.active = map[uint32]*slot{slotFirst: s.slot}
	k.groups[slotFirst].Ready = 1
	d := sl.duty
	phases := rand.New(rand.NewPCG(seed, 2))
	d.programs, d.now, d.phase = s, func() time.Time { return s.now }, phases.Float64
	d.probes = []sampledProbe{{frequent: frequentProbes()[0]}}
	d.begin(sl.active, false)
	return s
}

// run lets time pass until the cycles have ended.
func (s *simulation) run(t *testing.T, cycles int) {
	t.Helper()
	for cycles > 0 {
		s.pass(max(0, s.slots.duty.next().Sub(s.now)))
		ended, err := s.slots.duty.step()
		if err != nil {
			t.Fatal(err)
		}
		if ended {
			s.slots.duty.settle(s.slots)
			cycles--
		}
	}
	s.slot.report(1)
}

func (s *simulation) truth() float64 { return s.load(0, s.now.Sub(s.began).Seconds()) }

func TestASteadyLoadIsEstimatedAsItIs(t *testing.T) {
	s := simulate(t, steady(100_000), 1)
	s.run(t, 60)
	if got, want := float64(s.slot.Calls[0]), s.truth(); math.Abs(got-want) > want/1000 {
		t.Errorf("%.0f calls, were %.0f", got, want)
	}
	if share := s.attached.Seconds() / s.now.Sub(s.began).Seconds(); share < 0.09 || share > 0.12 {
		t.Errorf("attached for %.3f of the time", share)
	}
}

// A process may be watched, and a cycle end, before the next scrape has read its slot.
func TestASlotThatWasNeverReadIsSettled(t *testing.T) {
	s := simulate(t, steady(100_000), 1)
	k := s.slots.kernel
	k.group(slotFirst, 1, "it")
	free, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Queue, ValueSize: 4, MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = free.Close() }()
	if err := free.Put(nil, uint32(slotFirst+1)); err != nil {
		t.Fatal(err)
	}
	k.freeSlots = free
	if err := s.slots.watch(watch.Process{PID: 1, Comm: "it"}, slotFirst, &watcher{}, t.Errorf); err != nil {
		t.Fatal(err)
	}
	if len(s.slots.active) != 2 {
		t.Fatalf("%d slots, want that of the group and that of the process", len(s.slots.active))
	}
	s.run(t, 2)
	for _, sl := range s.slots.active {
		if sl.report(1); sl.watched != nil && sl.Calls[0] != 0 {
			t.Errorf("%d calls of a process that made none", sl.Calls[0])
		}
	}
	if err := s.slots.duty.end(s.slots.active); err != nil {
		t.Fatal(err)
	}
}

// The estimate is right on average, and the interval that its variance gives holds the truth as often as
// it says: for loads that are steady, that come in bursts with the period of the cycle and with others,
// and that wander.
func TestEstimatesAreUnbiasedAndKnowTheirError(t *testing.T) {
	const runs, cycles = 400, 60
	for name, l := range map[string]func(seed uint64) arrivals{
		"bursts of a cycle":       func(uint64) arrivals { return bursts(200_000, 1, 0.5) },
		"short bursts":            func(uint64) arrivals { return bursts(1_000_000, 1, 0.05) },
		"bursts of another":       func(uint64) arrivals { return bursts(200_000, 0.37, 0.2) },
		"bursts of several":       func(uint64) arrivals { return bursts(100_000, 7, 0.5) },
		"another rate each tenth": func(seed uint64) arrivals { return walk(seed, 50_000) },
	} {
		held, sum, squares := 0, 0.0, 0.0
		for seed := range uint64(runs) {
			s := simulate(t, l(seed), seed)
			s.run(t, cycles)
			v := s.slot.owner.Kept.sampled[sampledCalls].sum
			got, want := float64(s.slot.Calls[0]), s.truth()
			if math.Abs(got-want) <= 1.96*math.Sqrt(v) {
				held++
			}
			sum, squares = sum+got/want, squares+(got/want)*(got/want)
		}
		mean := sum / runs
		standardError := math.Sqrt((squares/runs - mean*mean) / runs)
		if math.Abs(mean-1) > 3*standardError {
			t.Errorf("%s: wrong by %.2f%% on average, which chance explains up to %.2f%%", name, 100*(mean-1), 300*standardError)
		}
		// 95 % less what chance explains in this number of runs.
		if share := float64(held) / runs; share < 0.95-2*math.Sqrt(0.95*0.05/runs) {
			t.Errorf("%s: the interval held the truth in %.1f%% of runs", name, 100*share)
		}
		t.Logf("%s: wrong by %.2f%% +- %.2f%% on average, held the truth in %.1f%% of %d runs",
			name, 100*(mean-1), 196*standardError, 100*float64(held)/runs, runs)
	}
}

// Whoever reads at any moment sees a steady load as steady, and no counter ever goes back.
func TestWhatIsReportedMovesEvenly(t *testing.T) {
	s := simulate(t, steady(100_000), 3)
	s.run(t, 2)
	s.slot.report(s.slots.duty.fraction())
	last, lastAt := s.slot.Calls[0], s.now
	for range 200 {
		next := s.now.Add(73 * time.Millisecond)
		for s.slots.duty.next().Before(next) {
			s.pass(max(0, s.slots.duty.next().Sub(s.now)))
			if ended, _ := s.slots.duty.step(); ended {
				s.slots.duty.settle(s.slots)
			}
		}
		s.pass(max(0, next.Sub(s.now)))
		s.slot.report(s.slots.duty.fraction())
		if s.slot.Calls[0] < last {
			t.Fatalf("went back from %d to %d", last, s.slot.Calls[0])
		}
		if passed := s.now.Sub(lastAt).Seconds(); passed > 5 {
			rate := float64(s.slot.Calls[0]-last) / passed
			if math.Abs(rate-100_000) > 1000 {
				t.Errorf("a rate of %.0f over %.1f s, is 100000", rate, passed)
			}
		}
		if s.now.Sub(lastAt) > 5*time.Second {
			last, lastAt = s.slot.Calls[0], s.now
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// When sampling begins, what is reported falls a cycle behind. Whoever reads twice a second sees it slow down for that,
// and never stand still.
func TestTheBeginningOfSamplingIsNotFlat(t *testing.T) {
	const rate, apart = 100_000, 500 * time.Millisecond
	s := simulate(t, steady(rate), 11)
	if err := s.slots.duty.end(s.slots.active); err != nil {
		t.Fatal(err)
	}
	s.pass(5 * time.Second)
	s.slot.report(1)
	s.slots.duty.begin(s.slots.active, true)
	s.slot.report(s.slots.duty.fraction())
	last := s.slot.Calls[0]
	for i := range 20 {
		for next := s.now.Add(apart); s.now.Before(next); {
			s.pass(max(0, earlier(next, s.slots.duty.next()).Sub(s.now)))
			if ended, _ := s.slots.duty.step(); ended {
				s.slots.duty.settle(s.slots)
			}
		}
		s.slot.report(s.slots.duty.fraction())
		if seen := float64(s.slot.Calls[0]-last) / apart.Seconds(); seen < 0.7*rate || seen > 1.05*rate {
			t.Errorf("%v after the beginning: a rate of %.0f, is %d", time.Duration(i+1)*apart, seen, rate)
		}
		last = s.slot.Calls[0]
	}
	if got, want := float64(last), s.truth()-rate*cycleTime.Seconds(); math.Abs(got-want) > want/100 {
		t.Errorf("%.0f calls are reported, want those until a cycle ago, %.0f", got, want)
	}
}

func TestRareCallsAreCountedRightOnAverage(t *testing.T) {
	total, truth := 0.0, 0.0
	for seed := range uint64(200) {
		s := simulate(t, steady(7.3), seed) // less than one in a window
		s.run(t, 100)
		total, truth = total+float64(s.slot.Calls[0]), truth+s.truth()
	}
	if math.Abs(total/truth-1) > 0.03 {
		t.Errorf("%.0f calls, were %.0f", total, truth)
	}
}

func TestGoingBackToCountingLosesNothing(t *testing.T) {
	s := simulate(t, steady(100_000), 5)
	s.run(t, 10)
	if err := s.slots.duty.end(s.slots.active); err != nil {
		t.Fatal(err)
	}
	before, truth := float64(s.slot.Calls[0]), s.truth()
	s.pass(20 * time.Second)
	s.slot.report(1)
	if got, want := float64(s.slot.Calls[0])-before, s.truth()-truth; math.Abs(got-want) > 50 {
		t.Errorf("%.0f calls after sampling ended, were %.0f", got, want)
	}
}

func TestEachMomentOfACycleIsAsLikelyToBeSeen(t *testing.T) {
	const n = 100_000
	seen := make([]int, 20)
	for i := range n {
		on, from := false, time.Duration(0)
		mark := func(to time.Duration) {
			for slot := range seen {
				if middle := cycleTime * time.Duration(2*slot+1) / 40; on && middle >= from && middle < to {
					seen[slot]++
				}
			}
			from = to
		}
		for _, turn := range plan(cycleTime, cycleTime/10, (float64(i)+0.5)/n) {
			mark(turn.at)
			on = turn.on
		}
		mark(cycleTime)
	}
	for slot, times := range seen {
		if share := float64(times) / n; math.Abs(share-0.1) > 0.001 {
			t.Errorf("%d/20 of a cycle: seen in %.3f of cycles, want 0.1", slot, share)
		}
	}
}

// Windows that cannot be opened are no windows without events: what happened meanwhile is made up for.
func TestWindowsThatFailAreNoZeros(t *testing.T) {
	s := simulate(t, steady(100_000), 7)
	s.run(t, 5)
	s.refused = true
	for end := s.now.Add(5 * time.Second); s.now.Before(end); {
		s.pass(max(0, s.slots.duty.next().Sub(s.now)))
		if ended, _ := s.slots.duty.step(); ended {
			s.slots.duty.settle(s.slots)
		}
	}
	s.refused = false
	s.run(t, 5)
	if got, want := float64(s.slot.Calls[0]), s.truth(); math.Abs(got-want) > want/100 {
		t.Errorf("%.0f calls, were %.0f", got, want)
	}
}
