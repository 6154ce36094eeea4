// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"testing"
)

// TestProportionPublished has the example of R's binom.test (682 of 925), and 0 of 10, by hand 1 - 0.025^(1/10).
func TestProportionPublished(t *testing.T) {
	for _, tt := range []struct{ x, n, low, high float64 }{
		{682, 925, 0.7076683, 0.7654066}, {0, 10, 0, 1 - math.Pow(0.025, 0.1)}, {10, 10, math.Pow(0.025, 0.1), 1},
	} {
		i := Proportion(tt.x/tt.n, tt.n, 0.95)
		if math.Abs(i.Low-tt.low) > 5e-8 || math.Abs(i.High-tt.high) > 5e-8 || i.N != int(tt.n) {
			t.Errorf("%v of %v is %+v, want %v to %v", tt.x, tt.n, i, tt.low, tt.high)
		}
	}
}

// TestProportionCovers sums up the exact probabilities of all outcomes: the interval holds in at least 95 % for any share.
func TestProportionCovers(t *testing.T) {
	for _, n := range []int{1, 5, 30, 200} {
		intervals := make([]Interval, n+1)
		for x := range intervals {
			intervals[x] = Proportion(float64(x)/float64(n), float64(n), 0.95)
		}
		for p := 0.005; p < 1; p += 0.005 {
			covered := 0.0
			for x, i := range intervals {
				if i.Low <= p && p <= i.High {
					covered += binomial(x, n, p)
				}
			}
			if covered < 0.95-1e-9 {
				t.Errorf("n=%d, p=%.3f: %.4f", n, p, covered)
			}
		}
	}
}

func binomial(x, n int, p float64) float64 {
	lgamma := func(v int) float64 { l, _ := math.Lgamma(float64(v)); return l }
	return math.Exp(lgamma(n+1) - lgamma(x+1) - lgamma(n-x+1) + float64(x)*math.Log(p) + float64(n-x)*math.Log1p(-p))
}

// TestShiftOfProportionsCovers sums up the exact probabilities of all pairs of outcomes.
func TestShiftOfProportionsCovers(t *testing.T) {
	const n1, n2, f1, f2 = 40, 60, 5, 20
	var before, after [61]Interval
	for x := range n1 + 1 {
		before[x] = Proportion(float64(x)/n1, n1, 0.95)
	}
	for x := range n2 + 1 {
		after[x] = Proportion(float64(x)/n2, n2, 0.95)
	}
	for _, p := range []float64{0.02, 0.15, 0.5, 0.9} {
		for _, q := range []float64{0.02, 0.15, 0.5, 0.9} {
			covered := 0.0
			for x := range n1 + 1 {
				for y := range n2 + 1 {
					if i := ShiftOfProportions(before[x], after[y], f1, f2); i.Low <= q*f2-p*f1 && q*f2-p*f1 <= i.High {
						covered += binomial(x, n1, p) * binomial(y, n2, q)
					}
				}
			}
			if covered < 0.95 {
				t.Errorf("%.2f and %.2f: the interval holds in %.4f", p, q, covered)
			}
		}
	}
	if i := ShiftOfProportions(Proportion(0.5, 0, 0.95), Proportion(0.5, 10, 0.95), 1, 1); i.N != 0 {
		t.Errorf("the difference to an unknown share is %+v", i)
	}
}
