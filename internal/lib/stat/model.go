// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Shape is the form of the relation between settings and an outcome.
type Shape string

// The shapes. Errors are relative in all of them, because they are fitted to the logarithm of the outcome.
const (
	// Constant: y = a.
	Constant Shape = "constant"
	// LogLinear: y = a · x₁^b₁ · x₂^b₂ ..., a straight line between logarithms. A setting with values of zero or below
	// enters as e^(b·x).
	LogLinear Shape = "log-linear"
	// Saturating: y = a · x/(k+x), which first rises in proportion and approaches a: Michaelis and Menten, Biochemische
	// Zeitschrift 49, 1913. The throughput of a closed queue has this form.
	Saturating Shape = "saturating"
	// Scalability: y = λ·x/(1+σ(x-1)+κx(x-1)), Gunther's universal scalability law ("Guerrilla Capacity Planning", 2007,
	// 4.4). It has its peak at √((1-σ)/κ).
	Scalability Shape = "universal scalability law"
	// Bend: y = a·x^b up to c, and a·x^b·(x/c)^d above it.
	Bend Shape = "bend"
	// Cliff: y = a·x^b up to c, and a·x^b·e^d above it.
	Cliff Shape = "cliff"
)

// support is the advantage in the corrected Akaike criterion that a shape with a peak or a break must have. Beyond
// it the simpler shape has no support: Burnham and Anderson, "Model Selection and Multimodel Inference", 2002, 2.6.
const support = 10

// refused is the P of the lack of fit below which no shape is right.
const refused = 0.001

// maxRows is the maximum number of observations that a model is fitted to.
const maxRows = 10_000

// spare is the minimum number of observations beyond the number of parameters.
const spare = 3

// A Model predicts a positive outcome from settings.
type Model struct {
	Shape Shape
	// Parameters are those of the shape in the order in which it names them: a and the b of each setting, a and k, λ σ κ, or
	// a b d c.
	Parameters []float64
	N          int
	// Scatter is the residual standard deviation of the logarithm of the outcome: 0.1 is about 10 %.
	Scatter float64

	rows    [][]float64 // observed settings
	logs    []bool      // whether each setting enters as its logarithm
	fit     []float64   // ln a, and the b or ln k
	inverse [][]float64 // of JᵀJ
	aicc    float64
	// A break lies somewhere between these two settings.
	breakLow, breakHigh float64
}

// A Prediction is what a model expects of a single further observation.
type Prediction struct {
	Interval // Low and High are the prediction interval, which includes the scatter of one observation
	// Extrapolates reports that the setting is outside the convex hull of the observed ones. The interval then holds
	// only if the shape continues.
	Extrapolates bool
}

// Fit fits the shapes to observations, each a row of settings and an outcome. It keeps the shape with the smallest
// corrected Akaike criterion (Hurvich and Tsai, Biometrika 76(2), 1989). Rows with a value that is not finite or an
// outcome that is not positive are skipped. It is an error when too few rows are left, when no setting varies by
// itself, or when the best shape does not fit.
func Fit(rows [][]float64, y []float64) (*Model, error) {
	x, logs, err := usable(rows, y)
	if err != nil {
		return nil, err
	}
	constant, err := linear(Constant, x, logs, nil)
	if err != nil {
		return nil, err
	}
	best := constant
	settings := len(x[0])
	power, err := linear(LogLinear, x, logs, transforms(x))
	switch {
	case err == nil && power.aicc < best.aicc:
		best = power
	case errors.Is(err, errSingular) && settings > 1:
		return nil, errors.New("the settings only change together, so their effects cannot be separated: use only one of them, or vary them one by one")
	}
	if settings == 1 {
		if s := saturating(x, logs); s != nil && s.aicc < best.aicc {
			best = s
		}
		simple := best
		for _, m := range shapes(x, logs) {
			if m.aicc+support < simple.aicc && m.aicc < best.aicc {
				best = m
			}
		}
	}
	if p := best.lackOfFit(logs); p < refused {
		return nil, fmt.Errorf("no model fits: the best of them, %s, leaves more than chance (P=%.2g); "+
			"measure more settings, or only those around the one of interest", best.Shape, p)
	}
	return best, nil
}

// usable returns copies of the usable rows and the logarithms of their outcomes.
func usable(rows [][]float64, y []float64) (x [][]float64, logs []float64, err error) {
	settings := 0
	for i := range min(len(rows), len(y)) {
		if i == 0 {
			settings = len(rows[0])
		}
		ok := isFinite(y[i]) && y[i] > 0 && len(rows[i]) == settings
		for _, v := range rows[i] {
			ok = ok && isFinite(v)
		}
		if ok && len(x) < maxRows {
			x, logs = append(x, rows[i]), append(logs, math.Log(y[i]))
		}
	}
	if settings == 0 {
		return nil, nil, errors.New("a prediction needs at least one setting")
	}
	if least := 1 + settings + spare; len(x) < least {
		return nil, nil, fmt.Errorf("%d usable observations are too few for %d settings: at least %d are needed", len(x), settings, least)
	}
	return x, logs, nil
}

// transforms reports for each setting whether it enters as its logarithm.
func transforms(x [][]float64) []bool {
	logs := make([]bool, len(x[0]))
	for j := range logs {
		logs[j] = true
		for _, row := range x {
			logs[j] = logs[j] && row[j] > 0
		}
	}
	return logs
}

// linear fits by least squares. Without transforms the model has no setting.
func linear(shape Shape, x [][]float64, y []float64, logs []bool) (*Model, error) {
	m := &Model{Shape: shape, N: len(x), rows: x, logs: logs}
	design := make([][]float64, len(x))
	for i, row := range x {
		design[i] = m.gradient(row)
	}
	b, inverse, err := leastSquares(design, y)
	if err != nil {
		return nil, err
	}
	m.inverse = inverse
	m.fit, m.Parameters = b, slices.Clone(b)
	m.finish(y)
	m.Parameters[0] = math.Exp(b[0])
	return m, nil
}

// gradient returns the derivative of the logarithm of the outcome with respect to the parameters.
func (m *Model) gradient(row []float64) []float64 {
	g := []float64{1}
	if m.Shape == Saturating {
		return append(g, -m.Parameters[1]/(m.Parameters[1]+row[0])) // with respect to ln k
	}
	if m.Shape == Scalability || m.Shape == Bend || m.Shape == Cliff {
		return m.slopes(row[0])
	}
	for j, log := range m.logs {
		if log {
			g = append(g, math.Log(row[j]))
		} else {
			g = append(g, row[j])
		}
	}
	return g
}

// saturating fits y = a·x/(k+x). For each k the best a is a mean; k is searched on a grid and then between its points.
// It returns nil when the setting is not positive, or when the data do not bend, so that k has no finite best value.
func saturating(x [][]float64, y []float64) *Model {
	low, high := math.Inf(1), 0.0
	for _, row := range x {
		low, high = math.Min(low, row[0]), math.Max(high, row[0])
	}
	if low <= 0 || low == high {
		return nil
	}
	a := 0.0
	loss := func(lk float64) (sum float64) {
		k := math.Exp(lk)
		a = 0
		for i, row := range x {
			a += (y[i] - math.Log(row[0]) + math.Log(k+row[0])) / float64(len(x))
		}
		for i, row := range x {
			r := y[i] - a - math.Log(row[0]) + math.Log(k+row[0])
			sum += r * r
		}
		return sum
	}
	const steps = 60
	from, to := math.Log(low)-5, math.Log(high)+5
	width := (to - from) / steps
	best := 0
	for i := range steps + 1 {
		if loss(from+float64(i)*width) < loss(from+float64(best)*width) {
			best = i
		}
	}
	if best == 0 || best == steps {
		return nil
	}
	lk := golden(loss, from+float64(best-1)*width, from+float64(best+1)*width)
	if !isFinite(loss(lk)) || math.IsInf(math.Exp(lk), 0) {
		return nil
	}
	m := &Model{Shape: Saturating, Parameters: []float64{math.Exp(a), math.Exp(lk)}, fit: []float64{a, lk}, N: len(x), rows: x}
	design := make([][]float64, len(x))
	for i, row := range x {
		design[i] = m.gradient(row)
	}
	_, inverse, err := leastSquares(design, y)
	if err != nil {
		return nil
	}
	m.inverse = inverse
	m.finish(y)
	return m
}

// golden finds the minimum between two points by golden-section search.
func golden(f func(float64) float64, low, high float64) float64 {
	ratio := (math.Sqrt(5) - 1) / 2
	for range 60 {
		a, b := high-ratio*(high-low), low+ratio*(high-low)
		if f(a) < f(b) {
			high = b
		} else {
			low = a
		}
	}
	return (low + high) / 2
}

// rounding is the mean square that rounding alone leaves of values of 1: about 1e-15 of each. A better fit is not
// meaningful.
const rounding = 1e-24

// finish computes the scatter and the criterion from the residuals.
func (m *Model) finish(y []float64) {
	sum := 0.0
	for i := range y {
		r := y[i] - m.logAt(m.rows[i])
		sum += r * r
	}
	n, p := float64(m.N), float64(len(m.Parameters))
	m.Scatter = math.Sqrt(sum / (n - p))
	k := p + 1 // the scatter is a parameter too
	m.aicc = n*math.Log(math.Max(sum/n, rounding)) + 2*k
	if left := n - k - 1; left > 0 {
		m.aicc += 2 * k * (k + 1) / left
	} else {
		m.aicc = math.Inf(1)
	}
}

// Predict returns the expected outcome at a setting. The interval covers one further observation there at the level
// (Draper and Smith, "Applied Regression Analysis", 3rd ed. 1998, chapters 3 and 24). It is NaN where the shape is not
// defined, or when the number of values is wrong.
func (m *Model) Predict(at []float64, level float64) Prediction {
	out := Prediction{Interval: unknown(level, m.N), Extrapolates: true}
	if len(at) != len(m.rows[0]) {
		return out
	}
	for j, v := range at {
		if !isFinite(v) || v <= 0 && (m.Shape != Constant && m.Shape != LogLinear || m.Shape == LogLinear && m.logs[j]) {
			return out
		}
	}
	y := m.logAt(at)
	half := m.half(at, level)
	out.Value, out.Low, out.High = math.Exp(y), math.Exp(y-half), math.Exp(y+half)
	if m.Shape == Cliff && at[0] > m.breakLow && at[0] < m.breakHigh {
		// Either side is possible.
		other := y + m.fit[2]
		if at[0] > m.fit[3] {
			other = y - m.fit[2]
		}
		out.Low, out.High = math.Exp(min(y, other)-half), math.Exp(max(y, other)+half)
	}
	out.Extrapolates = outside(m.rows, at)
	return out
}

// half returns half of the width of the interval of a further logarithm.
func (m *Model) half(at []float64, level float64) float64 {
	g, leverage := m.gradient(at)[:len(m.inverse)], 0.0
	for i := range g {
		leverage += g[i] * dot(m.inverse[i], g)
	}
	return studentQuantile(level, float64(m.N-len(m.Parameters))) * m.Scatter * math.Sqrt(1+leverage)
}
