// SPDX-License-Identifier: Apache-2.0

// Package stat holds the statistics that conclusions are based on: order statistics, intervals, tests that assume no
// distribution, change points, and small models for prediction.
//
// It uses numbers only, without metrics, times and workloads. Values that are not finite are not observations. Every
// function skips them, and n counts the others. A result that cannot be computed is NaN, never zero, and nothing panics.
// Methods and their sources are in docs/decisions/statistics.md.
package stat

import (
	"math"
	"slices"
)

// An Interval is an estimate with its confidence interval. With too few observations for the level its ends are
// infinite. Without observations all three are NaN.
type Interval struct {
	Value, Low, High float64
	Level            float64 // minimum coverage of the interval, such as 0.95
	N                int     // observations
}

// Bounded reports whether the interval has two finite ends.
func (i Interval) Bounded() bool { return i.N > 0 && isFinite(i.Low) && isFinite(i.High) }

func unknown(level float64, n int) Interval {
	return Interval{Value: math.NaN(), Low: math.NaN(), High: math.NaN(), Level: level, N: n}
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Sorted returns a sorted copy of the finite values of x.
func Sorted(x []float64) []float64 {
	s := finite(x)
	slices.Sort(s)
	return s
}

// finite returns a copy of the finite values of x in their order.
func finite(x []float64) []float64 {
	s := make([]float64, 0, len(x))
	for _, v := range x {
		if isFinite(v) {
			s = append(s, v)
		}
	}
	return s
}
