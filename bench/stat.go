// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Estimate is a median with its 95 % bootstrap interval.
type Estimate struct {
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	N      int     `json:"n"`
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// resamples is the number of bootstrap samples. The seed is fixed, so that a report can be reproduced.
const resamples = 10000

// estimate returns the median of values and its percentile bootstrap interval. The interval of a single value is that
// value and has no meaning. The field n shows this.
func estimate(values []float64) Estimate {
	e := Estimate{Median: median(values), N: len(values)}
	random := rand.New(rand.NewPCG(1, uint64(len(values))))
	medians := make([]float64, resamples)
	drawn := make([]float64, len(values))
	for i := range medians {
		for j := range drawn {
			drawn[j] = values[random.IntN(len(values))]
		}
		medians[i] = median(drawn)
	}
	slices.Sort(medians)
	e.Low, e.High = medians[resamples*25/1000], medians[resamples*975/1000-1]
	return e
}

// ratios divides each value by the base of the same round.
func ratios(values, base []float64) []float64 {
	out := make([]float64, len(values))
	for i := range values {
		out[i] = values[i] / base[i]
	}
	return out
}
