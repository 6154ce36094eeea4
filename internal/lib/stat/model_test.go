// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestSpearmanPublished(t *testing.T) {
	// IQ and hours of television: Wikipedia, "Spearman's rank correlation coefficient"; P by Student's t.
	iq := []float64{106, 100, 86, 101, 99, 103, 97, 113, 112, 110}
	tv := []float64{7, 27, 2, 50, 28, 29, 20, 12, 6, 17}
	c := Spearman(iq, tv, 0.95)
	near(t, "rho", c.Rho.Value, -29.0/165, 1e-12)
	near(t, "P", c.P, 0.627188, 5e-7)
	// Canned tuna: Hollander and Wolfe, 1973, 185ff. R's help of cor.test: rho is 0.6.
	x := []float64{44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1}
	y := []float64{2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8}
	near(t, "rho", Spearman(x, y, 0.95).Rho.Value, 0.6, 1e-12)
	c = Spearman([]float64{1, 2, 3, 4, 5}, []float64{1, 2, 3, 4, 5}, 0.95)
	near(t, "P of five in order", c.P, 2.0/120, 1e-12)
	if !c.Exact || c.Rho.Value != 1 || c.Rho.High != 1 || c.Rho.Low > 0 || c.Rho.Low < -0.5 {
		t.Errorf("%+v: five pairs in order leave much open", c)
	}
}

// TestOrdersAreAll compares Heap's algorithm with a recursive enumeration.
func TestOrdersAreAll(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 18))
	for range 30 {
		n := 3 + random.IntN(4)
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = float64(random.IntN(5)), float64(random.IntN(5))
		}
		ra, rb := doubledRanks(x), doubledRanks(y)
		if math.IsNaN(product(ra, rb)) {
			continue
		}
		seen := math.Abs(product(ra, rb)) - 1e-12
		strong, all := 0, 0
		var try func(left, order []int)
		try = func(left, order []int) {
			if len(left) == 0 {
				all++
				if math.Abs(product(ra, order)) >= seen {
					strong++
				}
			}
			for i := range left {
				try(slices.Concat(left[:i], left[i+1:]), append(slices.Clone(order), left[i]))
			}
		}
		try(rb, nil)
		near(t, "P", Spearman(x, y, 0.95).P, float64(strong)/float64(all), 1e-12)
	}
}

func TestFitCars(t *testing.T) {
	// Data set cars of R, from Ezekiel, 1930. lm(log(dist) ~ log(speed), cars): -0.7297, 1.6024, residual 0.4053.
	speed := []float64{
		4, 4, 7, 7, 8, 9, 10, 10, 10, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13, 14, 14, 14, 14, 15, 15,
		15, 16, 16, 17, 17, 17, 18, 18, 18, 18, 19, 19, 19, 20, 20, 20, 20, 20, 22, 23, 24, 24, 24, 24, 25,
	}
	dist := []float64{
		2, 10, 4, 22, 16, 10, 18, 26, 34, 17, 28, 14, 20, 24, 28, 26, 34, 34, 46, 26, 36, 60, 80, 20, 26,
		54, 32, 40, 32, 40, 50, 42, 56, 76, 84, 36, 46, 68, 32, 48, 52, 56, 64, 66, 54, 70, 92, 93, 120, 85,
	}
	m, err := Fit(column(speed), dist)
	if err != nil || m.Shape != LogLinear {
		t.Fatalf("Fit(cars) = %+v, %v", m, err)
	}
	near(t, "intercept", math.Log(m.Parameters[0]), -0.7297, 5e-5)
	near(t, "slope", m.Parameters[1], 1.6024, 5e-5)
	near(t, "scatter", m.Scatter, 0.4053, 5e-5)
	for at, outside := range map[float64]bool{3: true, 4: false, 13: false, 25: false, 26: true} {
		if p := m.Predict([]float64{at}, 0.95); p.Extrapolates != outside {
			t.Errorf("at %v Extrapolates is %v", at, p.Extrapolates)
		}
	}
	// By the formula: n=50, mean of log(speed) and its sum of squares from the data.
	var mean, squares float64
	for _, v := range speed {
		mean += math.Log(v) / 50
	}
	for _, v := range speed {
		squares += (math.Log(v) - mean) * (math.Log(v) - mean)
	}
	p := m.Predict([]float64{21}, 0.95)
	half := 2.010635 * m.Scatter * math.Sqrt(1+1.0/50+(math.Log(21)-mean)*(math.Log(21)-mean)/squares) // t with 48 degrees
	near(t, "half", math.Log(p.High/p.Value), half, 1e-5)
	near(t, "half", math.Log(p.Value/p.Low), half, 1e-5)
}

func column(x []float64) [][]float64 {
	rows := make([][]float64, len(x))
	for i, v := range x {
		rows[i] = []float64{v}
	}
	return rows
}

func TestFitSaturating(t *testing.T) {
	random := rand.New(rand.NewPCG(19, 20))
	hit, shapes := 0, map[Shape]int{}
	const times = 400
	for range times {
		var x, y []float64
		draw := func(at float64) float64 { return 100_000 * at / (8 + at) * math.Exp(0.05*random.NormFloat64()) }
		for _, at := range []float64{1, 2, 4, 8, 16, 32, 64} {
			for range 3 {
				x, y = append(x, at), append(y, draw(at))
			}
		}
		m, err := Fit(column(x), y)
		if err != nil {
			continue // one in a thousand looks as if it did not fit
		}
		shapes[m.Shape]++
		p := m.Predict([]float64{24}, 0.95)
		if v := draw(24); p.Low <= v && v <= p.High && !p.Extrapolates {
			hit++
		}
	}
	if shapes[Saturating] < times*99/100 {
		t.Errorf("of %d saturating series %v were recognised", times, shapes)
	}
	if share := float64(hit) / times; share < 0.92 || share > 0.98 {
		t.Errorf("the 95 %% prediction interval covers %.1f %% of %d new observations", 100*share, times)
	}
}

func TestFitChoosesConstant(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	constant := 0
	for range 200 {
		x, y := make([]float64, 20), make([]float64, 20)
		for i := range x {
			x[i], y[i] = float64(1+i), 1000*math.Exp(0.1*random.NormFloat64())
		}
		m, err := Fit(column(x), y)
		if err != nil {
			t.Fatal(err)
		}
		if m.Shape == Constant {
			constant++
		}
	}
	if constant < 150 {
		t.Errorf("%d of 200 outcomes that follow no setting were fitted so", constant)
	}
}

func TestFitTwoSettings(t *testing.T) {
	var rows [][]float64
	var y []float64
	for _, a := range []float64{1, 2, 4, 8} {
		for _, b := range []float64{0, 1, 2, 3} {
			if a > 2 && b > 1 {
				continue // a corner that was not observed
			}
			rows, y = append(rows, []float64{a, b}), append(y, 100*math.Pow(a, 0.7)*math.Exp(-0.2*b))
		}
	}
	m, err := Fit(rows, y)
	if err != nil || m.Shape != LogLinear {
		t.Fatalf("Fit() = %+v, %v", m, err)
	}
	for i, want := range []float64{100, 0.7, -0.2} {
		near(t, "parameter", m.Parameters[i], want, 1e-6)
	}
	for _, c := range []struct {
		a, b    float64
		outside bool
	}{{3, 0.5, false}, {8, 1, false}, {2, 3, false}, {8, 3, true}, {7, 2.5, true}, {1, 4, true}, {5, 2, false}, {5, 2.1, true}} {
		p := m.Predict([]float64{c.a, c.b}, 0.95)
		if p.Extrapolates != c.outside {
			t.Errorf("at %v, %v Extrapolates is %v: each is within its range, both together were not", c.a, c.b, p.Extrapolates)
		}
	}
}

func TestFitRefuses(t *testing.T) {
	together := [][]float64{{1, 2}, {2, 4}, {4, 8}, {8, 16}, {16, 32}, {32, 64}, {64, 128}}
	y := []float64{1, 2, 3, 4, 5, 6, 7}
	for want, rows := range map[string][][]float64{
		"change together": together, "at least one setting": {{}, {}}, "too few": {{1, 2}, {2, 1}, {3, 5}},
	} {
		if _, err := Fit(rows, y); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Fit() = %v, want %q", err, want)
		}
	}
	m, err := Fit(column([]float64{1, 2, 3, 4, 5, 6, 7}), y)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range [][]float64{{0}, {-1}, {math.NaN()}, {1, 2}, nil} {
		if p := m.Predict(at, 0.95); !math.IsNaN(p.Value) || !p.Extrapolates {
			t.Errorf("Predict(%v) = %+v", at, p)
		}
	}
}
