// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A line has its slope, also when a quarter of its values are wrong.
func TestTrendOfALine(t *testing.T) {
	x := make([]float64, 20)
	for i := range x {
		x[i] = 3 + 0.5*float64(i)
	}
	if got, ok := Trend(x, 0.95); !ok || got.Value != 0.5 || got.Low != 0.5 || got.High != 0.5 || got.N != 20 {
		t.Errorf("%+v, %t", got, ok)
	}
	rounded := make([]float64, len(x))
	for i := range rounded {
		rounded[i] = math.Round((0.4+0.1*float64(i)/6)*(1<<30)) / (1 << 30)
	}
	if got, ok := Trend(rounded, 0.95); !ok || !got.Bounded() || math.Abs(got.High-got.Low) > 1e-9 {
		t.Errorf("of rounded values: %+v, %t", got, ok)
	}
	for _, i := range []int{2, 7, 11, 17} {
		x[i] = 1000
	}
	if got, ok := Trend(x, 0.95); !ok || got.Value != 0.5 {
		t.Errorf("with outliers: %+v, %t", got, ok)
	}
}

// Values that have no trend: too few, not finite.
func TestNoTrend(t *testing.T) {
	for _, x := range [][]float64{nil, {1, 2, 3, 4}, {1, 2, math.NaN(), 4, 5, 6}, {1, 2, math.Inf(1), 4, 5, 6}} {
		if got, ok := Trend(x, 0.95); ok {
			t.Errorf("%v: %+v", x, got)
		}
	}
}

// The interval has the true slope about as often as it says, with independent errors. With dependent ones it is wider than
// one that ignores the dependence.
func TestIntervalsOfTrendsCover(t *testing.T) {
	const runs, n, slope = 2000, 18, 0.3
	for _, one := range []struct{ phi, least float64 }{{0, 0.93}, {0.5, 0.85}} {
		r := rand.New(rand.NewPCG(1, 2))
		covered := 0
		for range runs {
			x := autoregressive(r, n, one.phi)
			for i := range x {
				x[i] += slope * float64(i)
			}
			if got, ok := Trend(x, 0.95); ok && got.Low <= slope && slope <= got.High {
				covered++
			}
		}
		if share := float64(covered) / runs; share < one.least || share > 0.995 {
			t.Errorf("autocorrelation %v: %v of the intervals have the slope, want %v to 0.995", one.phi, share, one.least)
		}
	}
}
