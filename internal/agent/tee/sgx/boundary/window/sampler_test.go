// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// simulate runs a sampler with a load for a while and returns its estimate, its cost, and the true count. calls
// is the number of calls before a time.
func simulate(s *sampler, budget float64, d time.Duration, calls func(time.Duration) float64) (estimate, cost, truth float64) {
	const tick, attaching, detaching = 5 * time.Millisecond, time.Millisecond, 35 * time.Millisecond
	start := s.lastStep
	var now time.Duration
	var seen float64 // includes hits while detaching
	at := start.Add
	pass := func(by time.Duration) {
		if s.open { // also while detaching
			seen += calls(now+by) - calls(now)
		}
		now += by
	}
	var opened time.Duration
	for now < d || !s.exact && !s.done { // to the end of a window
		switch s.step(at(now), uint64(seen), budget) {
		case attach:
			now += attaching
			opened = now
			s.entered(at(now), uint64(seen))
		case detach:
			end, hits := now, uint64(seen)
			estimate += (calls(end) - calls(opened)) * s.weight(at(end))
			pass(detaching)
			s.left(at(end), at(now), hits, budget)
		}
		pass(max(time.Millisecond, min(tick, s.due().Sub(at(now)))))
	}
	if s.exact {
		estimate += calls(now) - calls(opened)
	}
	return estimate, seen, calls(now)
}

func TestSamplingKeepsTheCountAndTheBudget(t *testing.T) {
	steady := func(rate float64) func(time.Duration) float64 {
		return func(d time.Duration) float64 { return math.Floor(rate * d.Seconds()) }
	}
	// Calls occur only in the first tenth of each period.
	bursts := func(rate float64, period time.Duration) func(time.Duration) float64 {
		return func(d time.Duration) float64 {
			whole, part := d/period, d%period
			return rate * (float64(whole)*period.Seconds() + min(period.Seconds(), 10*part.Seconds()))
		}
	}
	for name, tt := range map[string]struct {
		calls func(time.Duration) float64
		error float64 // allowed in an hour
	}{
		"below the budget":       {steady(4000), 1e-6},
		"just above it":          {steady(15000), 0.01},
		"far above it":           {steady(400_000), 0.01},
		"bursts of a second":     {bursts(100_000, time.Second), 0.08},
		"bursts of half a cycle": {bursts(100_000, 350*time.Millisecond), 0.08},
		"bursts of a minute":     {bursts(100_000, time.Minute), 0.25},
	} {
		t.Run(name, func(t *testing.T) {
			const budget, hour = 10_000, time.Hour
			s := newSampler(time.Unix(0, 0), budget)
			s.random = rand.New(rand.NewPCG(1, 2)).Float64
			estimate, cost, truth := simulate(s, budget, hour, tt.calls)
			if off := math.Abs(estimate/truth - 1); off > tt.error {
				t.Errorf("estimated %.0f calls, want %.0f: %.3f off", estimate, truth, off)
			}
			deviation, _ := s.deviation()
			if off := math.Abs(estimate/truth - 1); off > 4*deviation+1e-6 {
				t.Errorf("the estimate is %.4f off, the reported error is %.4f", off, deviation)
			}
			if rate := cost / hour.Seconds(); rate > 1.3*budget {
				t.Errorf("%.0f hits a second were made, the budget is %d", rate, budget)
			}
		})
	}
}

func TestSamplerCountsEveryCallAgainAfterABurst(t *testing.T) {
	const budget = 10_000
	s := newSampler(time.Unix(0, 0), budget)
	calls := func(d time.Duration) float64 {
		return 50_000*min(d, 5*time.Second).Seconds() + 1000*max(0, d-5*time.Second).Seconds()
	}
	estimate, _, truth := simulate(s, budget, time.Minute, calls)
	if !s.exact || s.dutyCycle != 1 {
		t.Errorf("exact: %v with a duty cycle of %v, long after the burst", s.exact, s.dutyCycle)
	}
	if off := math.Abs(estimate/truth - 1); off > 0.3 {
		t.Errorf("estimated %.0f calls, want %.0f", estimate, truth)
	}
}

func TestSamplerWithoutABudgetNeverDetaches(t *testing.T) {
	s := newSampler(time.Unix(0, 0), 0)
	estimate, _, truth := simulate(s, 0, time.Minute, func(d time.Duration) float64 { return 1e6 * d.Seconds() })
	if !s.exact || math.Abs(estimate-truth) > 0.01*truth {
		t.Errorf("exact: %v, %v of %v", s.exact, estimate, truth)
	}
}
