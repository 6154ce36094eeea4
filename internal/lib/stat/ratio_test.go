// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestRatioOfSums: the ends were found by bisection, in another program, as the ratios R at which a paired t test of y and
// R x gives the tabulated t of 2.3646 (7 degrees of freedom, 95 %).
func TestRatioOfSums(t *testing.T) {
	x := []float64{100, 120, 90, 110, 105, 95, 130, 98}
	y := []float64{310, 352, 280, 322, 330, 275, 401, 290}
	i := RatioOfSums(y, x, 0.95)
	for _, c := range []struct {
		what      string
		got, want float64
	}{{"ratio", i.Value, 2560.0 / 848}, {"low", i.Low, 2.9363329354313987}, {"high", i.High, 3.1013469538243954}} {
		if math.Abs(c.got/c.want-1) > 1e-9 {
			t.Errorf("%s: %.12f, want %.12f", c.what, c.got, c.want)
		}
	}
	if i.N != 8 || i.Level != 0.95 {
		t.Errorf("%+v", i)
	}
	// The interval has the units of the values, however large they are.
	for _, scale := range []float64{1e-150, 1e150} {
		large := make([]float64, len(x))
		for k := range x {
			large[k] = x[k] * scale
		}
		if s := RatioOfSums(y, large, 0.95); math.Abs(s.Low*scale/i.Low-1) > 1e-9 || math.Abs(s.High*scale/i.High-1) > 1e-9 {
			t.Errorf("times %g: %+v", scale, s)
		}
	}
}

func TestRatioOfSumsRefuses(t *testing.T) {
	one := []float64{1, 1, 1, 1, 1, 1, 1, 1}
	nan, inf := math.NaN(), math.Inf(1)
	for what, x := range map[string][]float64{
		"none": nil, "zero": make([]float64, 8), "negative": {-1, -1, -1, -1, -1, -1, -1, -1}, "NaN": {nan, nan}, "overflow": {math.MaxFloat64, math.MaxFloat64},
	} {
		if i := RatioOfSums(one, x, 0.95); !math.IsNaN(i.Value) || !math.IsNaN(i.Low) {
			t.Errorf("%s: %+v", what, i)
		}
	}
	if i := RatioOfSums([]float64{1e300}, []float64{1e-300}, 0.95); !math.IsNaN(i.Value) {
		t.Errorf("an infinite ratio: %+v", i)
	}
	if i := RatioOfSums([]float64{2, nan, 2, 7}, []float64{1, 1, 1, inf}, 0.95); i.Value != 2 || i.N != 2 || i.Bounded() {
		t.Errorf("two pairs are left, too few for an interval: %+v", i)
	}
	if i := RatioOfSums([]float64{1, 1, 1, 1, 1, 1, 1, 90}, []float64{0, 0, 0, 0, 0, 0, 0, 30}, 0.95); i.Value <= 3 || i.Bounded() {
		t.Errorf("what it is divided by may be zero: %+v", i)
	}
	if i := RatioOfSums(make([]float64, 8), one, 0.95); i.Value != 0 || i.Low != 0 || i.High != 0 {
		t.Errorf("nothing by something: %+v", i)
	}
}

// TestRatioOfSumsCovers: the interval covers the true ratio in at least 93 % of series, also where the load wanders, where
// the cost of an operation does, and where the two are not read at the same moment.
func TestRatioOfSumsCovers(t *testing.T) {
	const times, truth = 400, 3.0
	for _, c := range []struct {
		name       string
		load, cost float64 // autocorrelation; negative: does not vary
		late       bool    // y is read one window later
	}{{"independent", 0, 0, false}, {"the load wanders", 0.8, 0, false}, {"the cost wanders", 0, 0.7, false}, {"both", 0.8, 0.5, false}, {"read later", 0.5, -1, true}} {
		random := rand.New(rand.NewPCG(15, 23))
		hit, bounded := 0, 0
		for range times {
			const n = 60
			load, cost := autoregressive(random, n+1, max(0, c.load)), autoregressive(random, n, max(0, c.cost))
			x, y := make([]float64, n), make([]float64, n)
			for i := range x {
				x[i] = 1000 * (1 + 0.2*load[i+1])
				of := x[i]
				if c.late {
					of = 1000 * (1 + 0.2*load[i])
				}
				y[i] = truth * of
				if c.cost >= 0 {
					y[i] += truth * 1000 * 0.1 * cost[i]
				}
			}
			if i := RatioOfSums(y, x, 0.95); i.Bounded() {
				bounded++
				if i.Low <= truth && truth <= i.High {
					hit++
				}
			}
		}
		t.Logf("%s: %d of %d, of %d", c.name, hit, bounded, times)
		if bounded < times*3/4 || float64(hit) < 0.93*float64(bounded) {
			t.Errorf("%s: covered by %d of %d intervals of %d", c.name, hit, bounded, times)
		}
	}
}

// TestRatioOfSumsCoversWithFewPairs: the same for 8 to 30 pairs, whose autocorrelation is hardly known. The cost of an operation wanders.
func TestRatioOfSumsCoversWithFewPairs(t *testing.T) {
	const times, truth = 1000, 3.0
	for _, n := range []int{8, 10, 15, 30} {
		for _, phi := range []float64{0, 0.3, 0.5, 0.7, 0.8, 0.9} {
			random := rand.New(rand.NewPCG(15, uint64(n)))
			hit, bounded := 0, 0
			for range times {
				load, cost := autoregressive(random, n, 0), autoregressive(random, n, phi)
				x, y := make([]float64, n), make([]float64, n)
				for i := range x {
					x[i] = 1000 * math.Exp(0.2*load[i])
					y[i] = truth * x[i] * math.Exp(0.2*cost[i]-0.02)
				}
				i := RatioOfSums(y, x, 0.95)
				if i.Bounded() {
					bounded++
				}
				if !i.Bounded() || i.Low <= truth && truth <= i.High {
					hit++
				}
			}
			t.Logf("n=%d, phi=%v: covers %.1f %%, %d of %d have ends", n, phi, 100*float64(hit)/times, bounded, times)
			// Three standard errors below 95 %, and 2 % for what few pairs cannot show.
			if float64(hit)/times < 0.93-3*math.Sqrt(0.95*0.05/times) {
				t.Errorf("n=%d, phi=%v: the 95 %% interval covers the ratio in %.1f %% of %d series", n, phi, 100*float64(hit)/times, times)
			}
		}
	}
}
