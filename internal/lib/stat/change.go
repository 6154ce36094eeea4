// SPDX-License-Identifier: Apache-2.0

package stat

import "math"

// A Change is a confirmed change of the level of a series.
type Change struct {
	At            int      // index of the first value after the change
	Before, After Interval // medians of the segments on both sides, at 95 %
	Delta         Interval // Cliff's delta of after over before, at 95 %
	Ratio         Interval // of the medians; unknown when that of before is not positive
	P             float64  // of the Mann-Whitney test, corrected: see [Changes]
	// Shift is the two-sided P of the distance of the medians, by Student's t. Ranks cannot distinguish a step of two
	// standard deviations from one of forty. An analysis of thousands of series corrects this P for their number, and
	// not the other.
	Shift float64
}

// Thresholds are the conditions of a confirmed change.
type Thresholds struct {
	Alpha float64 // maximum P of a series
	Delta float64 // minimum absolute value of Cliff's delta
	Ratio float64 // minimum ratio of the medians, either way, such as 1.25
}

// DefaultThresholds returns the usual conditions. 0.474 is what Romano, Kromrey, Coraggio and Skowronek (Florida
// Association of Institutional Research, 2006) call a large effect. The ratio is proposed.
func DefaultThresholds() Thresholds { return Thresholds{Alpha: 0.05, Delta: 0.474, Ratio: 1.25} }

// Changes finds the changes of level of a series ([changePoints]). It keeps those that have a minimum size and that a
// Mann-Whitney test of the segments on both sides confirms. Points that are not confirmed are removed, the one with the
// greatest P first. The others are then tested again with the longer segments.
//
// The position of a change was chosen because it separates the values best. So P is multiplied by the number of possible
// positions (Bonferroni). The test assumes independent values, so its variance is multiplied for their autocorrelation.
func Changes(x []float64, limits Thresholds) []Change {
	points := changePoints(x)
	from := max(0, len(x)-maxChangePoints)
	for len(points) > 0 {
		p := confirm(x[from:], points, from)
		worst := 0
		for i := range p {
			if p[i] > p[worst] {
				worst = i
			}
		}
		if p[worst] <= limits.Alpha {
			return sized(x[from:], points, from, p, limits)
		}
		points = append(points[:worst], points[worst+1:]...)
	}
	return nil
}

// segments cuts x at the points. The first value of x has the index from.
func segments(x []float64, points []int, from int) [][]float64 {
	var parts [][]float64
	begin := 0
	for _, at := range points {
		parts = append(parts, x[begin:at-from])
		begin = at - from
	}
	return append(parts, x[begin:])
}

// confirm returns the corrected P of each point.
func confirm(x []float64, points []int, from int) []float64 {
	parts := segments(x, points, from)
	rho := autocorrelation(parts)
	positions := float64(len(x) - 2*minSegment + 1)
	p := make([]float64, len(points))
	for i := range points {
		p[i] = math.Min(1, positions*mannWhitney(parts[i], parts[i+1], inflation(rho)).P)
	}
	return p
}

// autocorrelation is [estimatedAutocorrelation], where a value within one standard error of zero, or below, counts as 0.
func autocorrelation(parts [][]float64) float64 {
	rho, n := estimatedAutocorrelation(parts)
	if n == 0 || rho < 1/math.Sqrt(n) {
		return 0
	}
	return math.Min(rho, maxAutocorrelation)
}

// estimatedAutocorrelation estimates the autocorrelation of neighbours within segments, from the ranks of their distances to the
// segments' medians. The estimate is low by about (1+3ρ)/n for each estimated mean (Kendall, Biometrika 41, 1954),
// which is corrected. n is the number of values, or 0 if all of them are equal.
func estimatedAutocorrelation(parts [][]float64) (rho, n float64) {
	var residuals []float64
	var next []bool // whether the value follows the previous one directly
	for _, part := range parts {
		m := Median(part)
		for i, v := range finite(part) {
			residuals, next = append(residuals, v-m), append(next, i > 0)
		}
	}
	ranks := ranksOf(residuals)
	var products, squares float64
	for i, r := range ranks {
		squares += r * r
		if next[i] {
			products += r * ranks[i-1]
		}
	}
	if squares == 0 {
		return 0, 0
	}
	n = float64(len(ranks))
	rho = products / squares
	return rho + float64(len(parts))*(1+3*rho)/n, n
}

// sized describes the changes that are large enough.
func sized(x []float64, points []int, from int, p []float64, limits Thresholds) []Change {
	parts := segments(x, points, from)
	rho := autocorrelation(parts)
	var changes []Change
	for i, at := range points {
		before, after := parts[i], parts[i+1]
		c := Change{At: at, P: p[i], Delta: cliffDelta(before, after, 0.95)}
		c.Before, c.After = SerialMedianInterval(before, 0.95), SerialMedianInterval(after, 0.95)
		if math.Abs(c.Delta.Value) >= limits.Delta && apart(c.Before.Value, c.After.Value, limits.Ratio) {
			c.Ratio, c.Shift = ratioOfMedians(before, after, 0.95), shift(c, before, after, rho)
			changes = append(changes, c)
		}
	}
	return changes
}

// shift tests how far two medians are apart. The standard error of a median of normal values is √(π/2) times that of
// their mean. The degrees of freedom are those of independent values whose standard deviation is known equally well.
// Autocorrelated values count for less. The median absolute deviation is as good as 37 of 100 values (Rousseeuw and
// Croux, Journal of the American Statistical Association 88, 1993).
func shift(c Change, before, after []float64, rho float64) float64 {
	const efficiency = 0.37
	s1, s2 := Spread(before), Spread(after)
	n1, n2 := float64(c.Before.N), float64(c.After.N)
	variance := math.Pi / 2 * inflation(rho) * (s1*s1/n1 + s2*s2/n2)
	t := math.Abs(c.After.Value-c.Before.Value) / math.Sqrt(variance)
	return studentTail(t, math.Max(1, efficiency*(n1+n2)/inflation(rho)-2))
}

// apart reports whether one of two non-negative values is at least ratio times the other.
func apart(a, b, ratio float64) bool {
	low, high := math.Min(a, b), math.Max(a, b)
	return high > low && (low <= 0 || high/ratio >= low)
}
