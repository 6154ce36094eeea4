// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"slices"
)

// Quantile returns the p-quantile of values in ascending order. It interpolates linearly between the order statistics
// around 1+(n-1)p: type 7 of Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician
// 50(4), 1996. This is the default of R and NumPy, and PromQL's quantile_over_time. It is NaN without values and for a
// p outside 0 to 1.
func Quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 || math.IsNaN(p) || p < 0 || p > 1 {
		return math.NaN()
	}
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i == len(sorted)-1 {
		return sorted[i]
	}
	f := at - float64(i)
	return (1-f)*sorted[i] + f*sorted[i+1] // the sum of the parts does not overflow where the difference does
}

// Median returns the 0.5-quantile of the finite values.
func Median(x []float64) float64 { return Quantile(Sorted(x), 0.5) }

// maxOutliers is the maximum number of outliers that a [Box] lists. It counts all.
const maxOutliers = 16

// whisker is the maximum length of a whisker in interquartile ranges: Tukey, "Exploratory Data Analysis", 1977, 2C.
const whisker = 1.5

// A Box holds the numbers of a box plot. Without values all of them are NaN.
type Box struct {
	N                        int
	Min, Q1, Median, Q3, Max float64
	// The whiskers end at the outermost values that are within 1.5 interquartile ranges of the box.
	WhiskerLow, WhiskerHigh float64
	Outlying                int       // values beyond the whiskers
	Outliers                []float64 // those farthest from the median, at most 16, in ascending order
}

// BoxOf returns the box plot of the finite values.
func BoxOf(x []float64) Box { return boxOf(Sorted(x)) }

func boxOf(s []float64) Box {
	b := Box{
		N: len(s), Min: Quantile(s, 0), Q1: Quantile(s, 0.25), Median: Quantile(s, 0.5), Q3: Quantile(s, 0.75),
		Max: Quantile(s, 1), WhiskerLow: math.NaN(), WhiskerHigh: math.NaN(),
	}
	if len(s) == 0 {
		return b
	}
	reach := whisker * (b.Q3 - b.Q1) // infinite when the range overflows; then nothing is an outlier
	first, _ := slices.BinarySearch(s, b.Q1-reach)
	after := len(s)
	for after > 0 && s[after-1] > b.Q3+reach {
		after--
	}
	// Quartiles are interpolated. With few values the outermost value within the whiskers' range can be inside the box.
	// The whisker then ends at the box.
	b.WhiskerLow, b.WhiskerHigh = math.Min(s[first], b.Q1), math.Max(s[after-1], b.Q3)
	b.Outlying = first + len(s) - after
	b.Outliers = farthest(s[:first], s[after:], b.Median)
	return b
}

// farthest returns the values below and above that are farthest from the centre.
func farthest(below, above []float64, centre float64) []float64 {
	for len(below)+len(above) > maxOutliers {
		if len(above) == 0 || len(below) > 0 && centre-below[len(below)-1] < above[0]-centre {
			below = below[:len(below)-1]
		} else {
			above = above[1:]
		}
	}
	return slices.Concat(below, above)
}
