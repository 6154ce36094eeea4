// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNile(t *testing.T) {
	// The level of the Nile fell after 1898, the 28th value, with the dam at Aswan: Cobb, Biometrika 65, 1978;
	// Zeileis, Kleiber, Krämer and Hornik, Computational Statistics & Data Analysis 44, 2003.
	if got := changePoints(nile()); !slices.Equal(got, []int{28}) {
		t.Fatalf("changePoints(Nile) = %v, want 28", got)
	}
	changes := Changes(nile(), DefaultThresholds())
	if len(changes) != 1 {
		t.Fatalf("Changes(Nile) = %+v", changes)
	}
	c := changes[0]
	// The means of the two segments: strucchange's documentation of breakpoints(Nile ~ 1).
	mean := func(x []float64) (m float64) {
		for _, v := range x {
			m += v / float64(len(x))
		}
		return m
	}
	near(t, "mean before", mean(nile()[:28]), 1097.75, 5e-3)
	near(t, "mean after", mean(nile()[28:]), 849.9722, 5e-5)
	near(t, "median before", c.Before.Value, 1130, 0)
	near(t, "median after", c.After.Value, 842.5, 0)
	if c.P > 1e-3 || c.Delta.High > -0.5 || c.Ratio.High > 0.9 || c.Before.N != 28 || c.After.N != 72 {
		t.Errorf("%+v", c)
	}
}

// scatter returns the sum of squares around the mean.
func scatter(x []float64) (sum float64) {
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return sum
}

// partition returns the minimum cost over all partitions, computed without pruning.
func partition(x []float64, penalty float64, least int) float64 {
	best := make([]float64, len(x)+1)
	best[0] = -penalty
	for to := 1; to <= len(x); to++ {
		best[to] = math.Inf(1)
		for from := 0; from <= to-least; from++ {
			best[to] = math.Min(best[to], best[from]+scatter(x[from:to])+penalty)
		}
	}
	return best[len(x)]
}

// TestPELTIsOptimal: pruning does not change the optimum, and no segment is too short.
func TestPELTIsOptimal(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	for range 300 {
		least := 1 + random.IntN(9)
		x := make([]float64, least+random.IntN(80))
		level := 0.0
		for i := range x {
			if random.IntN(12) == 0 {
				level = 4 * random.NormFloat64()
			}
			x[i] = level + random.NormFloat64()
		}
		penalty := 20 * random.Float64()
		points := pelt(x, penalty, least)
		cost, from := -penalty, 0
		for _, to := range append(slices.Clone(points), len(x)) {
			if to-from < least {
				t.Fatalf("%v: a segment of %d values is shorter than %d", points, to-from, least)
			}
			cost += scatter(x[from:to]) + penalty
			from = to
		}
		near(t, "cost", cost, partition(x, penalty, least), 1e-6)
	}
}

// A noiseMaker makes series without a change.
type noiseMaker struct {
	name string
	make func(*rand.Rand, int) []float64
}

func noises() []noiseMaker {
	each := func(draw func(*rand.Rand) float64) func(*rand.Rand, int) []float64 {
		return func(r *rand.Rand, n int) []float64 {
			x := make([]float64, n)
			for i := range x {
				x[i] = draw(r)
			}
			return x
		}
	}
	return []noiseMaker{
		{"normal", each(func(r *rand.Rand) float64 { return 100 + r.NormFloat64() })},
		{"exponential", each(func(r *rand.Rand) float64 { return r.ExpFloat64() })},
		{"heavy tails", each(func(r *rand.Rand) float64 { return r.NormFloat64() / math.Abs(r.NormFloat64()) })},
		{"rare events", each(func(r *rand.Rand) float64 {
			if r.IntN(10) == 0 {
				return 1
			}
			return 0
		})},
		{"autocorrelated", func(r *rand.Rand, n int) []float64 {
			x := make([]float64, n)
			v := r.NormFloat64() / math.Sqrt(1-0.25)
			for i := range x {
				x[i] = 100 + v
				v = 0.5*v + r.NormFloat64()
			}
			return x
		}},
	}
}

// TestNoiseHasNoChanges: in noise, the fraction of series with a confirmed change is at most the given level, even with
// no minimum effect.
func TestNoiseHasNoChanges(t *testing.T) {
	const times = 2000
	limits := Thresholds{Alpha: 0.01, Delta: 0, Ratio: 1}
	for _, noise := range noises() {
		random := rand.New(rand.NewPCG(11, 12))
		found, confirmed := 0, 0
		for range times {
			x := noise.make(random, 60)
			if len(changePoints(x)) > 0 {
				found++
			}
			if len(Changes(x, limits)) > 0 {
				confirmed++
			}
		}
		t.Logf("%s: a change point in %.2f %% of %d series, confirmed in %.2f %%",
			noise.name, 100*float64(found)/times, times, 100*float64(confirmed)/times)
		// Three standard errors of a hundredth in 2000 are 0.67 %.
		if most := 0.01 + 3*math.Sqrt(0.01*0.99/times); float64(confirmed)/times > most {
			t.Errorf("%s: a change is confirmed in %.2f %% of series without one", noise.name, 100*float64(confirmed)/times)
		}
	}
}

// TestChangesAreFound: a large enough change is found at its place, and no second one.
func TestChangesAreFound(t *testing.T) {
	const times = 500
	for _, c := range []struct {
		noise noiseMaker
		after func(float64) float64
		least int
	}{
		{noises()[0], func(v float64) float64 { return v + 40 }, times * 98 / 100},
		{noises()[1], func(v float64) float64 { return 10 * v }, times * 85 / 100},
		{noises()[4], func(v float64) float64 { return v + 40 }, times * 80 / 100},
	} {
		random := rand.New(rand.NewPCG(13, 14))
		found := 0
		for range times {
			x := c.noise.make(random, 60)
			for i := 40; i < 60; i++ {
				x[i] = c.after(x[i])
			}
			if c := Changes(x, DefaultThresholds()); len(c) == 1 && c[0].At >= 36 && c[0].At <= 44 {
				found++
			}
		}
		t.Logf("%s: %d of %d", c.noise.name, found, times)
		if found < c.least {
			t.Errorf("%s: %d of %d changes were found", c.noise.name, found, times)
		}
	}
}

// TestChangeOfWhatWasConstant: counters of rare events are zero for hours.
func TestChangeOfWhatWasConstant(t *testing.T) {
	x := make([]float64, 60)
	for i := 30; i < 60; i++ {
		x[i] = 5000
	}
	x[10], x[20] = math.NaN(), math.Inf(1)
	c := Changes(x, DefaultThresholds())
	if len(c) != 1 || c[0].At != 30 || c[0].Before.Value != 0 || c[0].Before.N != 28 || c[0].After.Value != 5000 || c[0].Delta.Value != 1 || c[0].Ratio.Bounded() {
		t.Errorf("Changes() = %+v", c)
	}
}

func BenchmarkChanges(b *testing.B) {
	random := rand.New(rand.NewPCG(15, 16))
	x := normals(random, 60, 0)
	for b.Loop() {
		Changes(x, DefaultThresholds())
	}
}
