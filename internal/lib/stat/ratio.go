// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"slices"
)

// RatioOfSums returns the sum of y divided by the sum of x. The values are pairs in the order of time: y[i] and x[i] are
// of the same time. The interval is Fieller's (Journal of the Royal Statistical Society B 16, 1954; Cochran, "Sampling
// Techniques", 3rd ed. 1977, 6.5). It needs no small variation of x.
//
// Neighbours may depend on each other. So the number of pairs is the effective one, by the autocorrelation of what the ratio
// leaves of each pair, corrected as in [SerialMedianInterval]. The ends are infinite if the pairs are worth fewer than 6
// independent ones, or if x may be zero. Pairs with a value that is not finite are omitted. The ratio is unknown if the sum
// of x is not positive, or if a sum or the ratio overflows.
func RatioOfSums(y, x []float64, level float64) Interval {
	var ys, xs []float64
	var sumY, sumX float64
	for i := range min(len(y), len(x)) {
		if isFinite(y[i]) && isFinite(x[i]) {
			ys, xs = append(ys, y[i]), append(xs, x[i])
			sumY, sumX = sumY+y[i], sumX+x[i]
		}
	}
	n := float64(len(xs))
	if n == 0 || !(sumX > 0) || !isFinite(sumX) || !isFinite(sumY) {
		return unknown(level, len(xs))
	}
	ratio := sumY / sumX
	if !isFinite(ratio) {
		return unknown(level, len(xs))
	}
	i := Interval{Value: ratio, Low: math.Inf(-1), High: math.Inf(1), Level: level, N: len(xs)}
	// In units of their means, so that no square overflows.
	unitY, unitX := math.Abs(sumY/n), sumX/n
	if unitY == 0 {
		unitY = 1
	}
	left := make([]float64, len(xs))
	var xx, yy, xy float64
	meanY := sumY / n / unitY
	for k := range xs {
		v, u := ys[k]/unitY, xs[k]/unitX
		left[k] = v - meanY*u
		xx, yy, xy = xx+(u-1)*(u-1), yy+(v-meanY)*(v-meanY), xy+(u-1)*(v-meanY)
	}
	effective := n / serialInflation(left, ratioMargin, 1)
	if effective < leastEffective {
		return i
	}
	t := studentQuantile(level, effective-1)
	g := t * t / effective / (n - 1)
	a, b, c := 1-g*xx, meanY-g*xy, meanY*meanY-g*yy
	if !(a > 0) {
		return i
	}
	root := math.Sqrt(math.Max(0, b*b-a*c)) / a
	i.Low, i.High = (b/a-root)*unitY/unitX, (b/a+root)*unitY/unitX
	i.Low, i.High = math.Min(i.Low, ratio), math.Max(i.High, ratio) // rounding
	return i
}

// Margins that are added to an estimated autocorrelation, in standard errors. An estimate that is too low costs more coverage
// than one that is too high adds, and few values show hardly any autocorrelation. By simulation of 8 to 60 values
// (TestIntervalsOfDependentValues, TestRatioOfSumsCoversWithFewPairs): a smaller margin covers less than 93 %, where an interval
// without ends counts as one that covers. Intervals with ends cover less if few values depend much on each other.
const (
	medianMargin = 0.5 // the ends of a median are order statistics, which cover more than 95 %
	ratioMargin  = 0.75
)

// roundingError is the largest difference of equal values, relative to the values.
const roundingError = 1e-9

// serialInflation is [inflation] for the autocorrelation of values in the order of time, with a margin in standard errors. It is 1 for
// equal values, also if they differ by rounding errors.
func serialInflation(x []float64, margin, size float64) float64 {
	rho, n := estimatedAutocorrelation([][]float64{x})
	if n == 0 || slices.Max(x)-slices.Min(x) <= roundingError*size {
		return 1
	}
	rho = math.Max(-1, math.Min(rho, maxAutocorrelation))
	rho += margin * math.Sqrt((1-rho*rho)/n)
	return inflation(math.Max(0, math.Min(rho, maxAutocorrelation)))
}
