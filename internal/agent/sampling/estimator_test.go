// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestASteadyLoadIsEstimatedAsItIs(t *testing.T) {
	s := simulate(steady(100_000), 1)
	s.run(t, 60)
	if got, want := s.atEnd(), s.truth(); math.Abs(got-want) > want/1000 {
		t.Errorf("%.0f calls, were %.0f", got, want)
	}
	if ratio := s.attached.Seconds() / s.now.Sub(s.began).Seconds(); ratio < 0.09 || ratio > 0.12 {
		t.Errorf("attached for %.3f of the time", ratio)
	}
}

// The estimate is unbiased, and the interval from its variance contains the true number at its nominal rate: for
// steady loads, for bursts with the period of the cycle and with others, and for random walks.
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
			s := simulate(l(seed), seed)
			s.run(t, cycles)
			got, want := s.atEnd(), s.truth()
			if math.Abs(got-want) <= 1.96*math.Sqrt(s.sum()) {
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
			t.Errorf("%s: the interval contained the true value in %.1f%% of runs", name, 100*share)
		}
		t.Logf("%s: wrong by %.2f%% +- %.2f%% on average, contained the true value in %.1f%% of %d runs",
			name, 100*(mean-1), 196*standardError, 100*float64(held)/runs, runs)
	}
}

// The programs of this test are slowed down by counting, or keep windows from opening while they run, or make calls that are
// unrelated to their CPU time. The estimate is right on average, and its interval contains the true value. A program that
// alternates between calls at full speed and computing is counted low by 13 % (31 % without event rates), because a window of a
// fixed time sees less of the work that it slows down.
func TestEstimatesAreRightForProgramsThatTheProcessorLimits(t *testing.T) {
	const runs, cycles = 100, 30
	const burst = 300 * time.Millisecond
	loop, pause, compute := task{most: burst, fast: true}, task{most: burst}, task{most: burst, compute: true}
	for name, w := range map[string]worker{
		"a loop":                  {does: []task{loop}},
		"a loop with pauses":      {does: []task{loop, pause}},
		"a rate":                  {does: []task{{most: burst, rate: 50_000}}},
		"a rate that changes":     {does: []task{{most: burst, rate: 500_000}, {most: burst, rate: 5_000}, pause}},
		"calls and computing":     {does: []task{loop, compute}, low: 0.15},
		"calls without computing": {does: []task{{most: burst, rate: 50_000}, compute}},
		"windows open late":       {does: []task{loop, pause}, blocking: true},
	} {
		held, sum, squares := 0, 0.0, 0.0
		for seed := range uint64(runs) {
			s := simulate(steady(0), seed)
			s.counters.Costs[0] = countTakes
			w := w
			w.random = rand.New(rand.NewPCG(seed, 3))
			s.worker = &w
			s.run(t, 10) // event rates are known
			got0, made0, v0 := s.atEnd(), w.made, s.sum()
			s.run(t, cycles)
			got, made := s.atEnd()-got0, w.made-made0
			if math.Abs(got-made) <= 1.96*math.Sqrt(s.sum()-v0)+made/1000 { // a steady load has no variance
				held++
			}
			sum, squares = sum+got/made, squares+(got/made)*(got/made)
		}
		mean := sum / runs
		standardError := math.Sqrt((squares/runs - mean*mean) / runs)
		t.Logf("%s: wrong by %+.2f%% +- %.2f%% on average, one by %.2f%%, contained the true value in %.1f%% of %d runs", name, 100*(mean-1),
			196*standardError, 100*standardError*math.Sqrt(runs), 100*float64(held)/runs, runs)
		if math.Abs(mean-1) > 3*standardError+0.01+w.low {
			t.Errorf("%s: wrong by %+.2f%% on average, which chance explains up to %.2f%%", name, 100*(mean-1), 300*standardError)
		}
		if share := float64(held) / runs; share < 0.95-w.low-3*math.Sqrt(0.95*0.05/runs) {
			t.Errorf("%s: the interval contained the true value in %.1f%% of runs", name, 100*share)
		}
	}
}

// A steady load looks steady at any time of reading, and no counter decreases.
func TestWhatIsReportedMovesEvenly(t *testing.T) {
	s := simulate(steady(100_000), 3)
	s.run(t, 2)
	last, lastAt := s.report(), s.now
	for range 200 {
		s.until(s.now.Add(73 * time.Millisecond))
		now := s.report()
		if now < last {
			t.Fatalf("went back from %.0f to %.0f", last, now)
		}
		if passed := s.now.Sub(lastAt).Seconds(); passed > 5 {
			if rate := (now - last) / passed; math.Abs(rate-100_000) > 1000 {
				t.Errorf("a rate of %.0f over %.1f s, is 100000", rate, passed)
			}
			last, lastAt = now, s.now
		}
	}
}

// When sampling begins, the reported counts fall one cycle behind. This takes twenty seconds. So no rate over
// five seconds, or over one, is more than 6 % low.
func TestTheBeginningOfSamplingIsNotLow(t *testing.T) {
	const rate = 100_000
	for _, apart := range []time.Duration{time.Second, 5 * time.Second} {
		s := simulate(steady(rate), 11)
		s.end(t)
		s.pass(5 * time.Second)
		s.atEnd()
		s.begin(true)
		last := s.report()
		for at := apart; at <= time.Minute; at += apart {
			s.until(s.now.Add(apart))
			now := s.report()
			if seen := (now - last) / apart.Seconds(); seen < 0.94*rate || seen > 1.01*rate {
				t.Errorf("%v after the beginning: a rate of %.0f, is %d", at, seen, rate)
			}
			last = now
		}
		if want := s.truth() - rate*Period.Seconds(); math.Abs(last-want) > want/1000 {
			t.Errorf("%.0f calls are reported, want those until a cycle ago, %.0f", last, want)
		}
	}
}

// A program that ends soon after sampling began is reported with at most the calls that were expected in a cycle.
func TestAForecastIsForOneCycle(t *testing.T) {
	const runs = 100
	sum := 0.0
	for seed := range uint64(runs) {
		s := simulate(func(from, to float64) float64 { return 100_000 * max(0, min(to, 12.2)-min(from, 12.2)) }, seed)
		s.end(t)
		s.pass(5 * time.Second)
		s.atEnd()
		s.begin(true)
		s.until(s.now.Add(20 * time.Second))
		sum += (s.report() - s.truth()) / runs
	}
	if sum < -10_000 || sum > 100_000 {
		t.Errorf("%.0f more calls than a program made", sum)
	}
}

func TestRareCallsAreCountedRightOnAverage(t *testing.T) {
	total, truth := 0.0, 0.0
	for seed := range uint64(200) {
		s := simulate(steady(7.3), seed) // less than one in a window
		s.run(t, 100)
		total, truth = total+s.atEnd(), truth+s.truth()
	}
	if math.Abs(total/truth-1) > 0.03 {
		t.Errorf("%.0f calls, were %.0f", total, truth)
	}
}

// Sampling may end at any moment of a cycle: before its window, in it, or after.
func TestGoingBackToCountingLosesNothing(t *testing.T) {
	for seed := range uint64(50) {
		s := simulate(steady(100_000), seed)
		s.run(t, 10)
		s.until(s.now.Add(time.Duration(seed) * 20 * time.Millisecond))
		s.report()
		s.end(t)
		if got, want := s.atEnd(), s.truth(); math.Abs(got-want) > 500 {
			t.Errorf("%.0f calls when sampling has ended %d ms after a cycle, were %.0f", got, 20*seed, want)
		}
		before, truth := s.atEnd(), s.truth()
		s.pass(20 * time.Second)
		if got, want := s.atEnd()-before, s.truth()-truth; math.Abs(got-want) > 50 {
			t.Errorf("%.0f calls after sampling ended, were %.0f", got, want)
		}
	}
}

// A window that cannot be opened does not count as a window without events. The next cycle counts for both.
func TestWindowsThatFailAreNoZeros(t *testing.T) {
	s := simulate(steady(100_000), 7)
	s.run(t, 5)
	s.refused = true
	for end := s.now.Add(5 * time.Second); s.now.Before(end); {
		_, _ = s.step()
	}
	s.refused = false
	s.run(t, 5)
	if got, want := s.atEnd(), s.truth(); math.Abs(got-want) > want/100 {
		t.Errorf("%.0f calls, were %.0f", got, want)
	}
}

// A call that was last made minutes ago has no event rate.
func TestAnEventRateIsForgotten(t *testing.T) {
	w, e := word{}, exposure{}
	w.learn(100)
	e.learn(CPUTime{window: 2 * leastCPU}, 1, 0, 0, 0)
	if got := e.rate(&w); got != 100/(2*leastCPU) {
		t.Errorf("a rate of %v", got)
	}
	for range 300 {
		w.learn(0)
		e.learn(CPUTime{window: 2 * leastCPU}, 1, 0, 0, 0)
	}
	if w.events != 0 || e.rate(&w) != 0 {
		t.Errorf("%v events are still known", w.events)
	}
}

// A group makes few of the system calls. The others take no memory, and a call that comes later is not missed.
func TestOnlyWordsThatCountAreKept(t *testing.T) {
	c := Counters{Series: []Series{{Kind: 0, First: 0, Last: 400}, {Kind: 1, First: 410, Last: 420}}, Costs: []float64{0, 0}, Random: func() float64 { return 1 }}
	counted, reported := make([]uint64, 420), make([]uint64, 420)
	var e Estimator
	kept := func(want int, when string) {
		t.Helper()
		if len(e.words) != want {
			t.Errorf("%d words are kept %s, want %d", len(e.words), when, want)
		}
	}
	is := func(at int, want uint64, when string) {
		t.Helper()
		if e.Report(counted, reported, 1); reported[at] != want {
			t.Errorf("word %d is %d %s, want %d", at, reported[at], when, want)
		}
	}
	counted[300] = 7
	e.Report(counted, reported, 1)
	e.Begin(&c, counted, reported, true)
	kept(1, "at first")
	counted[5], counted[415], counted[405] = 3, 4, 5 // the last one is not sampled
	is(5, 3, "in the warm-up")
	is(415, 4, "in the warm-up")
	is(405, 5, "although no events of it are sampled")
	kept(3, "in the warm-up")
	variance := make([]Variance, 2)
	time := CPUTime{cycle: 10 * leastCPU, window: 10 * leastCPU}
	e.EndCycle(Cycle{factor: 1, norm: 1, weight: 1, warmUp: true}, time, counted, variance)
	counted[399], counted[5] = 2, 4
	e.EndCycle(Cycle{factor: 10, norm: 1, weight: 1}, CPUTime{cycle: 10 * leastCPU, window: leastCPU}, counted, variance)
	kept(4, "after a window with a call that is new")
	is(399, 20, "after a window with a tenth of the time")
	is(5, 13, "after a window with a tenth of the time")
	is(300, 7, "as long as it is not called")
	e.End(counted)
	counted[5], counted[0] = 5, 1
	is(5, 14, "after sampling")
	is(0, 1, "after sampling")
	is(399, 20, "after sampling")
	e.Begin(&c, counted, reported, false)
	kept(5, "at the next beginning")
}

// While nothing counts a series, its last events are reported once, and nothing is estimated of it. Other series of the kind are.
func TestASeriesThatIsOffIsNotEstimated(t *testing.T) {
	c := Counters{Series: []Series{{Kind: 0, First: 0, Last: 1, Off: true}, {Kind: 0, First: 1, Last: 2}}, Costs: []float64{100}}
	counted, reported := []uint64{5000, 0}, []uint64{9000, 0}
	var e Estimator
	e.Begin(&c, counted, reported, true)
	counted[0] += 300 // before the program is detached
	cycle, variance := Cycle{factor: 1, norm: 1, weight: 1, warmUp: true}, make([]Variance, 1)
	for i, time := range []CPUTime{{cycle: 100 * leastCPU, window: 100 * leastCPU}, {cycle: 100 * leastCPU, window: leastCPU}, {cycle: 50 * leastCPU, window: leastCPU}} {
		counted[1] += 10
		e.EndCycle(cycle, time, counted, variance)
		variance[0].EndCycle(cycle, 0)
		if e.Report(counted, reported, 1); reported[0] != 9300 || reported[1] < uint64(10*i) {
			t.Errorf("cycle %d: %v events are reported", i, reported)
		}
		cycle = Cycle{factor: 50, norm: 1, weight: 1}
	}
}

// A group that ends with an estimate below zero, because its windows had more than their share of its CPU time, has made no
// events. Its number does not wrap around.
func TestANumberIsNeverBelowZero(t *testing.T) {
	c := Counters{Series: []Series{{Kind: 0, First: 0, Last: 1}}, Costs: []float64{100}}
	counted, reported := make([]uint64, 1), make([]uint64, 1)
	var e Estimator
	e.Begin(&c, counted, reported, false)
	cycle, variance := Cycle{factor: 10, norm: 1, weight: 1}, make([]Variance, 1)
	counted[0] = 10
	e.EndCycle(cycle, CPUTime{cycle: 10 * leastCPU, window: 2 * leastCPU}, counted, variance)
	cycle.final = true
	e.EndCycle(cycle, CPUTime{cycle: 40 * leastCPU, window: 40 * leastCPU}, counted, variance)
	if e.Report(counted, reported, 1); reported[0] != 0 {
		t.Errorf("%d events are reported of a group whose estimate is below zero", reported[0])
	}
}

// BenchmarkCycle ends a cycle of 200 groups that make 20 of 460 system calls, and reports their counts.
func BenchmarkCycle(b *testing.B) {
	const groups, words, used = 200, 460, 20
	c := Counters{Series: []Series{{Kind: 0, First: 0, Last: words}}, Costs: []float64{100}}
	variance := make([]Variance, 1)
	counted, reported := make([][]uint64, groups), make([][]uint64, groups)
	all := make([]Estimator, groups)
	for g := range all {
		counted[g], reported[g] = make([]uint64, words), make([]uint64, words)
		all[g].Begin(&c, counted[g], reported[g], false)
	}
	b.ReportAllocs()
	for b.Loop() {
		for g := range all {
			for w := range used {
				counted[g][w*words/used]++
			}
			all[g].EndCycle(Cycle{factor: 10, norm: 1, weight: 1}, CPUTime{cycle: leastCPU, window: leastCPU / 10}, counted[g], variance)
			all[g].Report(counted[g], reported[g], 0.5)
		}
	}
}

// A program that ends in the middle of a cycle is reported at once, as many events as it made on average. Later cycles report
// no more of them, and the next run of the program begins at zero.
func TestAGroupThatEndsIsReportedAtOnce(t *testing.T) {
	const runs, rate = 400, 100_000
	sum, squares := 0.0, 0.0
	for seed := range uint64(runs) {
		ends := 20 + float64(seed%10)/10
		first := func(at float64) float64 { return rate * min(at, ends) }
		second := func(at float64) float64 { return rate * max(0, at-40) }
		s := simulate(func(from, to float64) float64 { return first(to) - first(from) + second(to) - second(from) }, seed)
		s.takes, s.counters.Costs[0] = 2000, 0 // counting does not slow it down
		settle := func() float64 {
			s.cycle.Observe(0, s.ran)
			s.group.EndCycle(s.cycle.Interrupted(), s.cycle.Take(0), s.counted, s.variance)
			return s.atEnd()
		}
		s.until(s.began.Add(time.Duration((ends + 0.05) * float64(time.Second))))
		got := settle()
		s.until(s.began.Add(40 * time.Second))
		if later := s.atEnd(); later != got {
			t.Fatalf("%.0f calls were reported at the end, and %.0f later", got, later)
		}
		ratio := got / (rate * ends)
		sum, squares = sum+ratio, squares+ratio*ratio
		s.until(s.began.Add(60 * time.Second))
		if got, want := settle()-got, rate*20.0; math.Abs(got-want) > want/20 {
			t.Errorf("%.0f calls of the next run, were %.0f", got, want)
		}
	}
	mean := sum / runs
	standardError := math.Sqrt((squares/runs - mean*mean) / runs)
	t.Logf("wrong by %+.2f%% +- %.2f%% on average", 100*(mean-1), 196*standardError)
	if math.Abs(mean-1) > 3*standardError+0.001 {
		t.Errorf("wrong by %+.2f%% on average, which chance explains up to %.2f%%", 100*(mean-1), 300*standardError)
	}
}

// A program that ends in every cycle makes less than one event of a kind per run. None of these fractions is lost.
func TestRareEventsOfProgramsThatEndAreCounted(t *testing.T) {
	const runs, ratio, perRun = 200_000, 0.1, 0.1
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a fixed seed
	var e Estimator
	c := &Counters{Series: []Series{{Kind: 0, First: 0, Last: 1}}, Costs: []float64{0}, Random: random.Float64}
	counted, reported, variance := []uint64{0}, []uint64{0}, make([]Variance, 1)
	e.Begin(c, counted, reported, false)
	whole := Cycle{factor: 1 / ratio, norm: 1, weight: 1}
	ends := whole
	ends.final = true
	made := 0.0
	for range runs {
		events := 0.0
		for range 10 {
			if random.Float64() < perRun/10 {
				events++
			}
		}
		made += events
		ran := CPUTime{cycle: 60e6}
		if random.Float64() < ratio { // the run lies in the window
			ran.window = ran.cycle
			counted[0] += uint64(events)
		}
		e.EndCycle(ends, ran, counted, variance)
		e.Report(counted, reported, 1)
		e.EndCycle(whole, CPUTime{}, counted, variance) // the rest of the cycle
		e.Report(counted, reported, 1)
	}
	// The number of counted events has a relative standard deviation of 1 / sqrt(runs * ratio * perRun), which is 2.2 %.
	if got := float64(reported[0]); math.Abs(got/made-1) > 0.11 {
		t.Errorf("%.0f events are reported, were %.0f", got, made)
	}
}
