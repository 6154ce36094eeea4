// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"slices"
)

// leastTrend is the least number of values that have a trend.
const leastTrend = 5

// trendGrain is the size of residuals that are rounding, in parts of the range of the values.
const trendGrain = 1e-6

// Trend estimates the slope of values at equal distances, per distance: the median of the slopes of all pairs (Theil 1950;
// Sen, JASA 63, 1968). Up to 29 % of the values may be arbitrary. The interval is Sen's, from the distribution of
// Kendall's S without a trend. Neighbours that depend on each other make it wider: the variance of S grows by
// (1+ρ)/(1-ρ), where ρ is the autocorrelation of the residuals (Hamed and Rao, J. Hydrology 204, 1998, for a first-order
// process). It returns false for fewer than five values, and for values that are not finite.
func Trend(x []float64, level float64) (slope Interval, ok bool) {
	n := len(x)
	if n < leastTrend || len(finite(x)) < n {
		return Interval{}, false
	}
	slopes := make([]float64, 0, n*(n-1)/2)
	for i := range x {
		for j := i + 1; j < n; j++ {
			slopes = append(slopes, (x[j]-x[i])/float64(j-i))
		}
	}
	slices.Sort(slopes)
	middle := Quantile(slopes, 0.5)
	// Without a grain, the rounding errors of a straight line depend on each other.
	grain := (slices.Max(x) - slices.Min(x)) * trendGrain
	residuals := make([]float64, n)
	for i, v := range x {
		if residuals[i] = v - middle*float64(i) - x[0]; grain > 0 {
			residuals[i] = math.Round(residuals[i]/grain) * grain
		}
	}
	rho := autocorrelation([][]float64{residuals})
	count := float64(n)
	deviation := math.Sqrt(count * (count - 1) * (2*count + 5) / 18 * (1 + rho) / (1 - rho))
	half := NormalQuantile((1+level)/2) * deviation
	last := len(slopes) - 1
	low := math.Floor((float64(len(slopes))-half)/2) - 1
	slope = Interval{Value: middle, Low: math.Inf(-1), High: math.Inf(1), Level: level, N: n}
	if low >= 0 {
		slope.Low, slope.High = slopes[int(low)], slopes[last-int(low)]
	}
	return slope, true
}
