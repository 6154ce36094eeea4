// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMannWhitneyPublished(t *testing.T) {
	// Permeability of human chorioamnion: Hollander and Wolfe, 1973, 69f. R's help of wilcox.test: W = 35, one-sided
	// p = 0.1272, two-sided 0.2544.
	x := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	y := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	c := MannWhitney(x, y)
	near(t, "U", c.U, 50-35, 0)
	near(t, "P", c.P, 0.2544, 5e-5)
	if !c.Exact || c.N1 != 10 || c.N2 != 5 {
		t.Errorf("MannWhitney() = %+v", c)
	}
	// Ozone in May and in August, with ties: R's help again (airquality, Month in c(5, 8)): W = 127.5, p = 0.0001208.
	may := []float64{41, 36, 12, 18, 28, 23, 19, 8, 7, 16, 11, 14, 18, 14, 34, 6, 30, 11, 1, 11, 4, 32, 23, 45, 115, 37}
	august := []float64{39, 9, 16, 78, 35, 66, 122, 89, 110, 44, 28, 65, 22, 59, 23, 31, 44, 21, 9, 45, 168, 73, 76, 118, 84, 85}
	c = MannWhitney(august, may)
	near(t, "U", c.U, 127.5, 0)
	near(t, "P", c.P, 0.0001208, 5e-8)
	if c.Exact {
		t.Error("52 values were counted out")
	}
}

// TestExactIsAllDraws compares with an enumeration of all draws, including ties.
func TestExactIsAllDraws(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		n, m := 3+random.IntN(8), 0
		all := make([]float64, n)
		for i := range all {
			all[i] = float64(random.IntN(6))
		}
		m = 1 + random.IntN(n-1)
		ranks := doubledRanks(all)
		sum := func(set uint) (s int) {
			for i := range n {
				if set>>i&1 == 1 {
					s += ranks[i]
				}
			}
			return s
		}
		drawn := (uint(1)<<n - 1) &^ (uint(1)<<(n-m) - 1) // the last m
		var low, high, draws float64
		for set := range uint(1) << n {
			if bits.OnesCount(set) != m {
				continue
			}
			draws++
			if sum(set) <= sum(drawn) {
				low++
			}
			if sum(set) >= sum(drawn) {
				high++
			}
		}
		near(t, "P", MannWhitney(all[:n-m], all[n-m:]).P, math.Min(1, 2*math.Min(low, high)/draws), 1e-12)
	}
}

// TestNormalIsNearExact: at the size where the method changes, both results agree.
func TestNormalIsNearExact(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		x, y := normals(random, 20, 0), normals(random, 20, random.Float64())
		exact, ranks := MannWhitney(x, y), doubledRanks(slices.Concat(x, y))
		near(t, "P", normalP(exact.U, 20, 20, ranks, 1), exact.P, 0.005)
	}
}

func normals(random *rand.Rand, n int, mean float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = mean + random.NormFloat64()
	}
	return x
}

func TestCliffDeltaPublished(t *testing.T) {
	// Hogarty and Kromrey, 1999; R package effsize, example of cliff.delta: -0.25, from -0.7265846 to 0.3890062.
	treatment := []float64{10, 10, 20, 20, 20, 30, 30, 30, 40, 50}
	control := []float64{10, 20, 30, 40, 40, 50}
	d := cliffDelta(control, treatment, 0.95)
	near(t, "delta", d.Value, -0.25, 1e-12)
	near(t, "low", d.Low, -0.7265846, 5e-8)
	near(t, "high", d.High, 0.3890062, 5e-8)
	d = cliffDelta([]float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 0.95)
	if d.Value != 1 || d.High != 1 || d.Low > 0.6 {
		t.Errorf("four against four without an overlap are %+v: the interval is too narrow", d)
	}
}

// covers counts how often an interval covers the true value in simulations.
func covers(times int, truth float64, simulate func(*rand.Rand) Interval) float64 {
	random := rand.New(rand.NewPCG(7, 8))
	hit := 0
	for range times {
		if i := simulate(random); i.Low <= truth && truth <= i.High {
			hit++
		}
	}
	return float64(hit) / float64(times)
}

func TestIntervalsCover(t *testing.T) {
	exponential := func(random *rand.Rand, n int, mean float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = mean * random.ExpFloat64()
		}
		return x
	}
	overlap := 1 - math.Erfc(0.5) // P(y > x) - P(y < x) = 2Φ(1/√2)-1 for normals a standard deviation apart
	for _, c := range []struct {
		what        string
		truth       float64
		least, most float64 // nominal is 0.95
		simulate    func(*rand.Rand) Interval
	}{
		{"median of 15", math.Ln2, 0.94, 1, func(r *rand.Rand) Interval { return MedianInterval(exponential(r, 15, 1), 0.95) }},
		{"median of 200", math.Ln2, 0.94, 0.98, func(r *rand.Rand) Interval { return MedianInterval(exponential(r, 200, 1), 0.95) }},
		{"ratio of medians of 25", 3, 0.92, 0.998, func(r *rand.Rand) Interval {
			return ratioOfMedians(exponential(r, 25, 1), exponential(r, 25, 3), 0.95)
		}},
		{"Cliff's delta of 20", overlap, 0.92, 0.98, func(r *rand.Rand) Interval {
			return cliffDelta(normals(r, 20, 0), normals(r, 20, 1), 0.95)
		}},
		{"Spearman of 25", 6 / math.Pi * math.Asin(0.6/2), 0.92, 0.98, func(r *rand.Rand) Interval {
			x, y := normals(r, 25, 0), normals(r, 25, 0)
			for i := range y {
				y[i] = 0.6*x[i] + 0.8*y[i]
			}
			return Spearman(x, y, 0.95).Rho
		}},
	} {
		if got := covers(1000, c.truth, c.simulate); got < c.least || got > c.most {
			t.Errorf("the 95 %% interval of the %s covers the true value in %.1f %% of 1000 simulations", c.what, 100*got)
		} else {
			t.Logf("%s: %.1f %% of 1000", c.what, 100*got)
		}
	}
}
