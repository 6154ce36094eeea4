// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// poisson has groups of events at random moments.
func poisson(seed uint64, rate, size, seconds float64) arrivals {
	r := rand.New(rand.NewPCG(seed, 5))
	var at []float64
	for t := r.ExpFloat64() / rate; t < seconds; t += r.ExpFloat64() / rate {
		at = append(at, t)
	}
	until := func(t float64) float64 { return size * float64(sort.SearchFloat64s(at, t)) }
	return func(from, to float64) float64 { return until(to) - until(from) }
}

// The interval of rare events contains the true value of a minute, also when no window of the minute contained any.
func TestTheIntervalOfRareEventsHolds(t *testing.T) {
	const runs, minutes = 40, 4
	for _, ratio := range []float64{0.1, 0.02, 0.002} {
		for _, seen := range []float64{0.1, 0.3, 1, 2, 3, 5, 10, 30} { // mean number of groups of events in the windows of a minute
			for _, size := range []float64{1, 30} {
				held, got, want := 0, 0.0, 0.0
				for seed := range uint64(runs) {
					s := simulate(poisson(seed, seen/60/ratio, size, 60*minutes+70), seed)
					s.takes, s.rate = 1000, 1.0/1000
					s.cycle.SetRatio(ratio)
					s.run(t, 2)
					for range minutes {
						got0, want0, v0 := s.atEnd(), s.truth(), s.sum()
						s.run(t, 60)
						is, was := s.atEnd()-got0, s.truth()-want0
						if math.Abs(is-was) <= 1.96*math.Sqrt(s.sum()-v0) {
							held++
						}
						got, want = got+is, want+was
					}
				}
				share := float64(held) / (runs * minutes)
				t.Logf("%.1f groups of %.0f in windows of %.3f: contained the true value in %.1f%% of minutes, wrong by %+.1f%%",
					seen, size, ratio, 100*share, 100*(got/want-1))
				// 95 % less what chance explains in this number of minutes.
				if share < 0.95-3*math.Sqrt(0.95*0.05/(runs*minutes)) {
					t.Errorf("%.1f groups of %.0f in windows of %.3f: contained the true value in %.1f%% of minutes", seen, size, ratio, 100*share)
				}
			}
		}
	}
}

// Groups share the windows, so their errors add up, not their variances.
func TestTheErrorOfASumIsThatOfItsParts(t *testing.T) {
	var one, two, all Variance
	r := rand.New(rand.NewPCG(1, 6))
	c := Cycle{factor: 10, norm: 1}
	for range 100 {
		residual := 1000 * r.NormFloat64()
		for _, v := range []*Variance{&one, &two} {
			v.cycle.add(spread{residual: residual, events: 100, cpu: 1e6, missed: 1e7})
			all.Include(v)
			v.EndCycle(c, 0)
		}
		all.EndCycle(c, 0)
	}
	each, _ := one.Sum()
	if sum, _ := all.Sum(); math.Abs(sum/each-4) > 0.01 {
		t.Errorf("a variance of %.0f for the sum of two equal numbers with %.0f each", sum, each)
	}
}
