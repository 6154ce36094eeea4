// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

// maxBreaks bounds the places at which a break is searched.
const maxBreaks = 100

// shapes returns the models of one positive setting that can have a peak or a break.
func shapes(x [][]float64, y []float64) (all []*Model) {
	for _, row := range x {
		if row[0] <= 0 {
			return nil
		}
	}
	if m := scalability(x, y); m != nil {
		all = append(all, m)
	}
	for _, shape := range []Shape{Bend, Cliff} {
		if m := broken(shape, x, y); m != nil {
			all = append(all, m)
		}
	}
	return all
}

// scalability fits Gunther's law. N/y is linear in its parameters, which gives the first estimate. Gauss-Newton steps
// then minimise the squares of the logarithms. It returns nil if the outcome has no peak, because a saturating model
// has one parameter less.
func scalability(x [][]float64, y []float64) *Model {
	design, ones := make([][]float64, len(x)), make([]float64, len(x))
	for i, row := range x {
		n := row[0]
		w := math.Exp(y[i]) / n
		design[i], ones[i] = []float64{w, w * (n - 1), w * n * (n - 1)}, 1
	}
	b, _, err := leastSquares(design, ones)
	if err != nil || b[0] <= 0 {
		return nil
	}
	m := &Model{Shape: Scalability, N: len(x), rows: x, fit: []float64{-math.Log(b[0]), math.Max(0, b[1]/b[0]), b[2] / b[0]}}
	if m.fit[2] <= 0 {
		return nil
	}
	loss := func() (sum float64) {
		for i, row := range x {
			r := y[i] - m.logAt(row)
			sum += r * r
		}
		return sum
	}
	before := loss()
	residuals := make([]float64, len(x))
	for range 50 {
		for i, row := range x {
			residuals[i], design[i] = y[i]-m.logAt(row), m.gradient(row)
		}
		step, _, err := leastSquares(design, residuals)
		if err != nil {
			return nil
		}
		was, after := slices.Clone(m.fit), math.Inf(1)
		for part := 1.0; part > 1e-6 && !(after < before); part /= 2 {
			for j := range step {
				m.fit[j] = was[j] + part*step[j]
			}
			m.fit[1], m.fit[2] = math.Max(0, m.fit[1]), math.Max(0, m.fit[2])
			after = loss()
		}
		if !(after < before) {
			m.fit = was
			break
		}
		if before-after < 1e-12*before {
			break
		}
		before = after
	}
	if m.fit[2] <= 0 || !isFinite(before) {
		return nil
	}
	m.Parameters = []float64{math.Exp(m.fit[0]), m.fit[1], m.fit[2]}
	return m.solved(y)
}

// broken fits a bend or a cliff. Its place is tried between all neighbouring settings.
func broken(shape Shape, x [][]float64, y []float64) (best *Model) {
	var distinct []float64
	for _, row := range x {
		distinct = append(distinct, row[0])
	}
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	every := 1 + len(distinct)/maxBreaks
	for i := 1; i+2 < len(distinct); i += every { // at least two settings on either side
		low, high := distinct[i], distinct[i+1]
		try := func(at float64) {
			m := &Model{Shape: shape, N: len(x), rows: x, breakLow: low, breakHigh: high, fit: []float64{0, 0, 0, at}}
			design := make([][]float64, len(x))
			for i, row := range x {
				design[i] = m.gradient(row)[:3]
			}
			b, _, err := leastSquares(design, y)
			if err != nil {
				return
			}
			copy(m.fit, b)
			m.Parameters = []float64{math.Exp(b[0]), b[1], b[2], at}
			if m = m.solved(y); m != nil && (best == nil || m.aicc < best.aicc) {
				best = m
			}
		}
		if shape == Cliff {
			try(math.Sqrt(low) * math.Sqrt(high))
			continue
		}
		for part := range 4 { // a bend may lie at a setting or between two
			try(low * math.Pow(high/low, float64(part)/4))
		}
	}
	return best
}

// Peak returns the setting with the greatest outcome, or 0 if the shape has none.
func (m *Model) Peak() float64 {
	if m.Shape != Scalability || m.fit[1] >= 1 {
		return 0
	}
	return math.Sqrt((1 - m.fit[1]) / m.fit[2])
}

// Break returns the tried settings between which the shape breaks, or zeros if it does not.
func (m *Model) Break() (low, high float64) { return m.breakLow, m.breakHigh }

// solved computes what follows from the fitted parameters. The place of a cliff counts as a parameter, but has no
// derivative.
func (m *Model) solved(y []float64) *Model {
	design := make([][]float64, len(m.rows))
	for i, row := range m.rows {
		design[i] = m.gradient(row)
		if m.Shape == Cliff {
			design[i] = design[i][:3]
		}
	}
	_, inverse, err := leastSquares(design, y)
	if err != nil || m.N < len(m.Parameters)+spare {
		return nil
	}
	m.inverse = inverse
	m.finish(y)
	return m
}

// logAt returns the logarithm of the fitted outcome.
func (m *Model) logAt(row []float64) float64 {
	switch m.Shape {
	case Saturating:
		return m.fit[0] + math.Log(row[0]) - math.Log(m.Parameters[1]+row[0])
	case Scalability:
		n := row[0]
		return m.fit[0] + math.Log(n) - math.Log(1+m.fit[1]*(n-1)+m.fit[2]*n*(n-1))
	case Bend, Cliff:
		return dot(m.fit[:3], m.gradient(row)[:3])
	}
	return dot(m.fit, m.gradient(row))
}

// slopes returns the derivatives of the logarithm for the shapes of this file.
func (m *Model) slopes(v float64) []float64 {
	if m.Shape == Scalability {
		d := 1 + m.fit[1]*(v-1) + m.fit[2]*v*(v-1)
		return []float64{1, -(v - 1) / d, -v * (v - 1) / d}
	}
	g := []float64{1, math.Log(v), 0, 0}
	if at := m.fit[3]; v > at {
		if g[2] = 1; m.Shape == Bend {
			g[2], g[3] = math.Log(v/at), -m.fit[2]/at
		}
	}
	return g
}

// lackOfFit returns the P of the test that a model has the right form. If settings were tried repeatedly, their scatter
// estimates the noise (Draper and Smith, "Applied Regression Analysis", 3rd ed. 1998, 2.1). Otherwise a parabola is added,
// whose share of the scatter must be chance. P is NaN if neither can be tested.
func (m *Model) lackOfFit(y []float64) float64 {
	groups := make(map[string][]float64)
	residual := 0.0
	for i, row := range m.rows {
		key := fmt.Sprint(row)
		groups[key] = append(groups[key], y[i])
		r := y[i] - m.logAt(row)
		residual += r * r
	}
	if residual <= rounding*float64(m.N) {
		return math.NaN()
	}
	pure := 0.0
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := groups[key]
		mean := 0.0
		for _, v := range g {
			mean += v / float64(len(g))
		}
		for _, v := range g {
			pure += (v - mean) * (v - mean)
		}
	}
	n, p, k := float64(m.N), float64(len(m.Parameters)), float64(len(groups))
	if n-k >= spare && k > p {
		return fisherTail((residual-pure)/(k-p)/(pure/(n-k)), k-p, n-k)
	}
	if len(m.rows[0]) != 1 || m.N < len(m.Parameters)+1+spare {
		return math.NaN()
	}
	design, rest := make([][]float64, m.N), make([]float64, m.N)
	for i, row := range m.rows {
		v := row[0]
		if v > 0 {
			v = math.Log(v)
		}
		g := m.gradient(row)
		if m.Shape == Cliff {
			g = g[:3]
		}
		design[i], rest[i] = append(slices.Clone(g), v*v), y[i]-m.logAt(row)
	}
	b, _, err := leastSquares(design, rest)
	if err != nil {
		return math.NaN()
	}
	left := 0.0
	for i := range rest {
		r := rest[i] - dot(b, design[i])
		left += r * r
	}
	return fisherTail((residual-left)/(left/(n-p-1)), 1, n-p-1)
}
