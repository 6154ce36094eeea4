// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// near compares with a published value, to the published digits.
func near(t *testing.T, what string, got, want, digits float64) {
	t.Helper()
	if math.Abs(got-want) > digits || math.IsNaN(got) != math.IsNaN(want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// nile is the flow of the Nile at Aswan, 1871 to 1970, in 10⁸ m³: data set Nile of R, from Cobb, Biometrika 65, 1978.
func nile() []float64 {
	return []float64{
		1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
		1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
		831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
		781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
		744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
	}
}

func TestBoxOfNile(t *testing.T) {
	// R: summary(Nile); its quantiles are of type 7 too. Fences at 447.5 and 1383.5.
	b := BoxOf(nile())
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"min", b.Min, 456}, {"Q1", b.Q1, 798.5}, {"median", b.Median, 893.5}, {"Q3", b.Q3, 1032.5}, {"max", b.Max, 1370},
		{"low whisker", b.WhiskerLow, 456}, {"high whisker", b.WhiskerHigh, 1370}, {"n", float64(b.N), 100}, {"outlying", float64(b.Outlying), 0},
	} {
		near(t, c.what, c.got, c.want, 0)
	}
}

func TestBoxFindsOutliers(t *testing.T) {
	b := BoxOf([]float64{5, 1, 2, 3, 4, 100, -50, math.NaN(), math.Inf(1)})
	// R: quantile(c(5,1,2,3,4,100,-50)) is -50, 1.5, 3, 4.5, 100: fences at -3 and 9.
	if b.N != 7 || b.Q1 != 1.5 || b.Q3 != 4.5 || b.WhiskerLow != 1 || b.WhiskerHigh != 5 || !slices.Equal(b.Outliers, []float64{-50, 100}) {
		t.Errorf("BoxOf() = %+v", b)
	}
	many := make([]float64, 100)
	for i := range many {
		many[i] = float64(i % 2)
	}
	for i := range 40 {
		many = append(many, 1000+float64(i), -2000-float64(i))
	}
	b = BoxOf(many)
	if b.Outlying != 80 || len(b.Outliers) != maxOutliers || b.Outliers[0] != -2039 || b.Outliers[15] != -2024 {
		t.Errorf("of 80 outliers %d are counted and %v listed; those farthest are wanted", b.Outlying, b.Outliers)
	}
}

// A whisker never ends inside the box. Box, whiskers and outliers together contain all values.
func TestBoxHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		x := make([]float64, 1+random.IntN(12))
		for i := range x {
			x[i] = math.Round(random.NormFloat64()*3) * math.Pow(10, float64(random.IntN(3)))
		}
		b := BoxOf(x)
		order := []float64{b.Min, b.WhiskerLow, b.Q1, b.Median, b.Q3, b.WhiskerHigh, b.Max}
		if !slices.IsSorted(order) {
			t.Fatalf("BoxOf(%v): %v are not in order", x, order)
		}
		beyond := 0
		for _, v := range x {
			if v < b.WhiskerLow || v > b.WhiskerHigh {
				beyond++
			}
		}
		if beyond != b.Outlying || len(b.Outliers) != min(beyond, maxOutliers) {
			t.Fatalf("BoxOf(%v): %d values are beyond the whiskers, %d are counted, %d listed", x, beyond, b.Outlying, len(b.Outliers))
		}
	}
}

func TestSpread(t *testing.T) {
	// R: mad(c(1,2,3,4,100)) is 1.482602.
	near(t, "Spread", Spread([]float64{1, 2, 3, 4, 100}), 1.482602, 5e-7)
	near(t, "MAD", mad([]float64{1, 2, 3, 4, 100}), 1, 0)
}

func TestFurther(t *testing.T) {
	// Ten values with the median 10 and the scaled MAD 1.4826, which exceeds the usual standard deviation 1.054. A further
	// value is t·sd·√(1+1/10) away at the quantile t of nine degrees of freedom: 3.2498 at 1 %, 4.7809 at 0.1 %.
	before := []float64{9, 11, 9, 11, 9, 11, 9, 11, 9, 11}
	for want, quantile := range map[float64]float64{0.01: 3.249836, 0.001: 4.780913} {
		z, p := Further(10+quantile*consistent*math.Sqrt(1.1), before, 1)
		near(t, "z", z, quantile*math.Sqrt(1.1), 1e-9)
		near(t, "P", p, want, want*1e-4)
	}
	// One value in ten is a job. The scaled MAD is zero or small, and the usual standard deviation of 0.3162 is not.
	before = []float64{0, 0, 0, 0, 1, 0, 0, 0, 0, 0}
	z, _ := Further(1, before, 1)
	near(t, "z", z, 1/math.Sqrt(0.1), 1e-9)
	// Values that depend on each other are worth less, unless they are known to be independent.
	line := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	_, dependent := Further(40, line, 1)
	if _, known := Further(40, line, 10); known > dependent/10 {
		t.Errorf("P is %v of ten independent values and %v of one", known, dependent)
	}
	if z, p := Further(2, []float64{2, 2, 2}, 1); z != 0 || p != 1 {
		t.Errorf("Further() = %v, %v", z, p)
	}
	if z, p := Further(3, []float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, 1); !math.IsInf(z, 1) || p != 0 {
		t.Errorf("Further() = %v, %v, want infinite: no earlier value is like it", z, p)
	}
}

func TestMedianInterval(t *testing.T) {
	// The coverage is 1 - 2*pbinom(low - 1, n, 0.5) in R.
	for _, c := range []struct {
		n, low, high int
		coverage     float64
	}{
		{6, 1, 6, 0.96875}, {10, 2, 9, 0.97852}, {20, 6, 15, 0.95861}, {25, 8, 18, 0.95671}, {50, 18, 33, 0.96716}, {100, 40, 61, 0.96480},
	} {
		x := make([]float64, c.n)
		for i := range x {
			x[i] = float64(c.n - i)
		}
		i := MedianInterval(x, 0.95)
		if i.Low != float64(c.low) || i.High != float64(c.high) || i.N != c.n {
			t.Errorf("n=%d: the interval is from rank %v to %v, want %d to %d", c.n, i.Low, i.High, c.low, c.high)
		}
		near(t, "coverage", i.Level, c.coverage, 6e-6)
	}
	if i := MedianInterval([]float64{1, 2, 3, 4, 5}, 0.95); i.Bounded() || i.Value != 3 {
		t.Errorf("five values have the interval %+v; none covers 95 %%", i)
	}
}

func TestStudent(t *testing.T) {
	// Any table of Student's t; NIST/SEMATECH e-Handbook, 1.3.6.7.2.
	for df, want := range map[float64]float64{1: 12.706, 2: 4.303, 5: 2.571, 10: 2.228, 30: 2.042, 100: 1.984} {
		near(t, "t", studentQuantile(0.95, df), want, 5e-4)
	}
	near(t, "t", studentQuantile(0.95, 1e6), NormalQuantile(0.975), 1e-5)
	near(t, "z", NormalQuantile(0.975), 1.959964, 5e-7)
	near(t, "tail", studentTail(0, 5), 1, 0)
}

func TestHolm(t *testing.T) {
	// R: p.adjust(c(0.01,0.04,0.03,0.02,0.05), "holm").
	got := Holm([]float64{0.01, 0.04, math.NaN(), 0.03, 0.02, 0.05})
	for i, want := range []float64{0.05, 0.09, math.NaN(), 0.09, 0.08, 0.09} {
		near(t, "Holm", got[i], want, 1e-12)
	}
}

// odd returns inputs that every function must handle.
func odd() map[string][]float64 {
	huge := make([]float64, 100)
	for i := range huge {
		huge[i] = math.MaxFloat64 * float64(1-2*(i/10%2))
	}
	constant := make([]float64, 100)
	for i := range constant {
		constant[i] = -7
	}
	long := make([]float64, 30_000)
	for i := range long {
		long[i] = float64(i%7) + float64(i/10_000)
	}
	nothing := []float64{math.NaN(), math.Inf(1), math.Inf(-1)}
	return map[string][]float64{
		"nil": nil, "nothing": nothing, "one": {1}, "two": {1, 2}, "zeros": make([]float64, 100), "constant": constant, "huge": huge,
		"tiny": {5e-324, 0, 5e-324, 0, -5e-324, 5e-324, 0, 0, 5e-324, 0, 0, 0, 0, 0, 0, 0, 5e-324}, "mixed": append(nothing, 1, 2, 3, 4, 5, 6, 7, 8, 9), "long": long,
	}
}

// TestNothingPanics: nothing panics, and an interval contains its value or is unknown.
func TestNothingPanics(t *testing.T) {
	check := func(what string, i Interval) {
		t.Helper()
		if !(i.Low <= i.Value && i.Value <= i.High) && !math.IsNaN(i.Value) {
			t.Errorf("%s: %+v", what, i)
		}
		if i.N == 0 && !math.IsNaN(i.Value) {
			t.Errorf("%s: %+v, without values", what, i)
		}
	}
	for name, x := range odd() {
		before := slices.Clone(x)
		BoxOf(x)
		Further(1, x, 1)
		check(name, MedianInterval(x, 0.95))
		for _, c := range Changes(x, DefaultThresholds()) {
			check(name, c.Ratio)
		}
		for other, y := range odd() {
			what := name + " and " + other
			check(what, ratioOfMedians(x, y, 0.95))
			check(what, cliffDelta(x, y, 0.95))
			check(what, Spearman(x, y, 0.95).Rho)
			if c := MannWhitney(x, y); c.P < 0 || c.P > 1 || math.IsNaN(c.P) != (c.N1 == 0 || c.N2 == 0) {
				t.Errorf("%s: %+v", what, c)
			}
			var rows [][]float64
			for _, v := range x {
				rows = append(rows, []float64{v})
			}
			if m, err := Fit(rows, y); err == nil {
				if p := m.Predict([]float64{3}, 0.95); !math.IsNaN(p.Value) && !math.IsInf(p.High, 1) {
					check(what, p.Interval)
				}
			}
		}
		if !slices.EqualFunc(x, before, func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }) {
			t.Errorf("%s was changed", name)
		}
	}
}
