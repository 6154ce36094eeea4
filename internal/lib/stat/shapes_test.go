// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// sdm91 is the throughput of a SPARCcenter 2000 by its load: data set specsdm91 of R's package usl, from SPEC.
func sdm91() (load, throughput []float64) {
	return []float64{1, 18, 36, 72, 108, 144, 216}, []float64{64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2}
}

// published is the law that usl 3.0 fits to sdm91 by least squares.
func published() *Model {
	p := []float64{89.9952330, 0.0277285, 0.0001044}
	return &Model{Shape: Scalability, Parameters: p, fit: []float64{math.Log(p[0]), p[1], p[2]}}
}

func TestScalabilityPublished(t *testing.T) {
	m := published()
	load, throughput := sdm91()
	var residuals []float64
	for i, n := range load {
		residuals = append(residuals, throughput[i]-math.Exp(m.logAt([]float64{n})))
	}
	slices.Sort(residuals)
	// usl: -81.7, -48.3, -25.1, 29.5, 111.1; its coefficients are printed with four digits.
	for i, want := range []float64{-81.7, -48.3, -25.1, 29.5, 111.1} {
		near(t, "residual", Quantile(residuals, float64(i)/4), want, 0.7)
	}
	peak := m.Peak()
	near(t, "peak", peak, 96.5, 0.05) // usl: peak.scalability
	at := func(n float64) float64 { return m.logAt([]float64{n}) }
	if at(peak) < at(peak*1.01) || at(peak) < at(peak/1.01) {
		t.Errorf("the law has no peak at %v", peak)
	}
	// Without noise the fit returns the parameters.
	y := make([]float64, len(load))
	for i, n := range load {
		y[i] = math.Exp(at(n))
	}
	got, err := Fit(column(load), y)
	if err != nil || got.Shape != Scalability {
		t.Fatalf("Fit() = %+v, %v", got, err)
	}
	for i, want := range m.Parameters {
		near(t, "parameter", got.Parameters[i], want, 1e-5*want)
	}
}

// TestFitShapes: the shape that made the outcomes is recognised, and the prediction interval covers a further one.
func TestFitShapes(t *testing.T) {
	const times = 300
	usl := published()
	for _, c := range []struct {
		shape    Shape
		settings []float64
		at       float64
		outcome  func(float64) float64
		least    int
	}{
		{Scalability, []float64{1, 4, 16, 32, 64, 128, 256, 512}, 200, func(n float64) float64 { return math.Exp(usl.logAt([]float64{n})) }, times * 99 / 100},
		// An enclave of 64 to 512 MiB with 93 MiB of enclave memory: constant, and then a twentieth.
		{Cliff, []float64{16, 32, 64, 80, 128, 192, 256, 512}, 160, func(v float64) float64 {
			if v > 93 {
				return 500
			}
			return 10_000
		}, times * 99 / 100},
		{Bend, []float64{16, 32, 64, 80, 128, 192, 256, 512}, 160, func(v float64) float64 { return 10_000 * math.Pow(math.Max(1, v/93), -2) }, times * 95 / 100},
	} {
		random := rand.New(rand.NewPCG(29, 30))
		draw := func(v float64) float64 { return c.outcome(v) * math.Exp(0.05*random.NormFloat64()) }
		shapes, hit, refused := map[Shape]int{}, 0, 0
		for range times {
			var x, y []float64
			for _, v := range c.settings {
				for range 3 {
					x, y = append(x, v), append(y, draw(v))
				}
			}
			m, err := Fit(column(x), y)
			if err != nil {
				refused++
				continue
			}
			shapes[m.Shape]++
			if v, p := draw(c.at), m.Predict([]float64{c.at}, 0.95); p.Low <= v && v <= p.High {
				hit++
			}
		}
		share := 100 * float64(hit) / float64(times-refused)
		t.Logf("%s: %v, refused %d, the interval covers %.1f %% of %d", c.shape, shapes, refused, share, times)
		if shapes[c.shape] < c.least-refused || refused > times*4/100 || share < 91 || share > 99 {
			t.Errorf("%s: %v, refused %d, the interval covers %.1f %%", c.shape, shapes, refused, share)
		}
	}
}

// TestCliffIsSomewhere: between the settings on both sides of a cliff the interval reaches from one level to the other.
func TestCliffIsSomewhere(t *testing.T) {
	var x, y []float64
	for i, v := range []float64{16, 32, 48, 64, 128, 160, 192, 256} {
		for j := range 2 {
			level := 10_000.0
			if v > 64 {
				level = 500
			}
			x, y = append(x, v), append(y, level*(1+0.02*float64((i+j)%3-1)))
		}
	}
	m, err := Fit(column(x), y)
	if err != nil || m.Shape != Cliff {
		t.Fatalf("Fit() = %+v, %v", m, err)
	}
	for _, at := range []float64{70, 120} {
		if p := m.Predict([]float64{at}, 0.95); p.Low > 500 || p.High < 10_000 {
			t.Errorf("at %v: %+v", at, p)
		}
	}
	if p := m.Predict([]float64{40}, 0.95); p.Low < 5000 {
		t.Errorf("before the cliff: %+v", p)
	}
}

// TestLackOfFit: a form that no model has is refused, and the right one rarely.
func TestLackOfFit(t *testing.T) {
	near(t, "F", fisherTail(4.964603, 1, 10), 0.05, 1e-6) // NIST/SEMATECH e-Handbook, 1.3.6.7.3
	near(t, "F", fisherTail(3.325835, 5, 10), 0.05, 1e-6)
	random := rand.New(rand.NewPCG(31, 32))
	const times = 500
	refused := func(repeats int, outcome func(float64) float64) (n int) {
		for range times {
			var x, y []float64
			for _, v := range []float64{1, 2, 4, 8, 16, 32, 64, 128, 256} {
				for range repeats {
					x, y = append(x, v), append(y, outcome(v)*math.Exp(0.05*random.NormFloat64()))
				}
			}
			if _, err := Fit(column(x), y); err != nil && strings.Contains(err.Error(), "no model fits") {
				n++
			}
		}
		return n
	}
	if n := refused(3, func(v float64) float64 { return 100 * v }); n > times*3/100 {
		t.Errorf("a straight line was refused %d of %d times", n, times)
	}
	if n := refused(1, func(v float64) float64 { return 100 * v }); n > times*3/100 {
		t.Errorf("a straight line without repeated settings was refused %d of %d times", n, times)
	}
	if n := refused(3, func(v float64) float64 { return 100 * (2 + math.Sin(2*math.Log2(v))) }); n < times*99/100 {
		t.Errorf("waves were refused %d of %d times", n, times)
	}
}
