// SPDX-License-Identifier: Apache-2.0

package stat

import "math"

// Proportion returns a share of n independent observations with its exact binomial interval (Clopper and Pearson,
// Biometrika 26, 1934). The number n need not be whole: it may be the effective number of observations with weights.
func Proportion(share, n, level float64) Interval {
	if !(n > 0) || !(share >= 0 && share <= 1) || !(level > 0 && level < 1) {
		return unknown(level, 0)
	}
	i := Interval{Value: share, Low: 0, High: 1, Level: level, N: int(n)}
	x, tail := share*n, (1-level)/2
	if x > 0 {
		i.Low = betaQuantile(tail, x, n-x+1)
	}
	if x < n {
		i.High = betaQuantile(1-tail, x+1, n-x)
	}
	return i
}

// betaQuantile returns the inverse of the regularised incomplete beta function, by bisection.
func betaQuantile(p, a, b float64) float64 {
	return crossing(0, 1, func(x float64) float64 { return incompleteBeta(a, b, x) - p })
}

// PartOfWhole returns the share of one part of a whole, with an interval that holds for all parts together, of any number: also for
// those that were chosen because their shares are large. A part with the true share p misses one of its ends with a probability of at
// most (1-level)p/2, and all p add up to 1. The whole has n independent observations, as for [Proportion].
func PartOfWhole(share, n, level float64) Interval {
	i := Proportion(share, n, level)
	if math.IsNaN(i.Value) {
		return i
	}
	x, tail := share*n, (1-level)/2
	i.Low, i.High = 0, 1
	if x > 1 { // a single observation may be of one of very many parts
		i.Low = crossing(0, share, func(p float64) float64 { return incompleteBeta(x, n-x+1, p) - tail*p })
	}
	if x < n {
		i.High = crossing(share, 1, func(p float64) float64 { return tail*p - (1 - incompleteBeta(x+1, n-x, p)) })
	}
	return i
}

// crossing returns where a function becomes positive between two values, by bisection.
func crossing(low, high float64, f func(float64) float64) float64 {
	for range 60 {
		if middle := low + (high-low)/2; f(middle) < 0 {
			low = middle
		} else {
			high = middle
		}
	}
	return low + (high-low)/2
}

// ShiftOfProportions returns the difference of two shares of independent observations, each times a known factor, with
// an interval that is put together from the intervals of both (Zou and Donner, Statistics in Medicine 27, 2008).
func ShiftOfProportions(before, after Interval, factorBefore, factorAfter float64) Interval {
	value := after.Value*factorAfter - before.Value*factorBefore
	down := math.Hypot((after.Value-after.Low)*factorAfter, (before.High-before.Value)*factorBefore)
	up := math.Hypot((after.High-after.Value)*factorAfter, (before.Value-before.Low)*factorBefore)
	return Interval{Value: value, Low: value - down, High: value + up, Level: min(before.Level, after.Level), N: min(before.N, after.N)}
}
