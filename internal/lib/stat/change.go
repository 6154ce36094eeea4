// SPDX-License-Identifier: Apache-2.0

package stat

import "math"

// A Change is a confirmed change of the level of a series.
type Change struct {
	At            int      // index of the first value after it
	Before, After Interval // medians of the segments on its sides, at 95 %
	Delta         Interval // Cliff's delta of after over before, at 95 %
	Ratio         Interval // of the medians; unknown when that of before is not positive
	P             float64  // Mann-Whitney, corrected: see [Changes]
	// Shift is the two-sided P of medians that far apart, by Student's t. Ranks cannot tell a step of two standard
	// deviations from one of forty: who looks at thousands of series corrects this P for them, and not the other.
	Shift float64
}

// Sureness is what a change needs to be confirmed.
type Sureness struct {
	Alpha float64 // greatest P of a series
	Delta float64 // least absolute value of Cliff's delta
	Ratio float64 // least ratio of the medians, either way, such as 1.25
}

// Sure is what is asked unless told otherwise. 0.474 is what Romano, Kromrey, Coraggio and Skowronek (Florida
// Association of Institutional Research, 2006) call a large effect; the ratio is proposed.
func Sure() Sureness { return Sureness{Alpha: 0.05, Delta: 0.474, Ratio: 1.25} }

// Changes finds the changes of level of a series ([ChangePoints]) and keeps those that a Mann-Whitney test of the
// segments on both sides confirms, with a least size. A point that is not confirmed is taken away, the one with the
// greatest P first, and what is left is tested again with the longer segments.
//
// The place of a change was chosen because it parts the values best, so P is multiplied by the number of places that
// there were to choose from (Bonferroni). The test takes values for independent; its variance is multiplied for their
// autocorrelation.
func Changes(x []float64, sure Sureness) []Change {
	points := ChangePoints(x)
	from := max(0, len(x)-MostChangePoints)
	for len(points) > 0 {
		p := confirm(x[from:], points, from)
		worst := 0
		for i := range p {
			if p[i] > p[worst] {
				worst = i
			}
		}
		if p[worst] <= sure.Alpha {
			return sized(x[from:], points, from, p, sure)
		}
		points = append(points[:worst], points[worst+1:]...)
	}
	return nil
}

// segments cuts x, which begins at an index, at the points.
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
	places := float64(len(x) - 2*leastSegment + 1)
	p := make([]float64, len(points))
	for i := range points {
		p[i] = math.Min(1, places*mannWhitney(parts[i], parts[i+1], inflation(rho)).P)
	}
	return p
}

// autocorrelation estimates that of neighbours within segments, from the ranks of their distances to the segments'
// medians. It is low by about (1+3ρ)/n for each mean that is estimated (Kendall, Biometrika 41, 1954), which is given
// back. What is within one standard error of zero, or below, is none.
func autocorrelation(parts [][]float64) float64 {
	var residuals []float64
	var next []bool // whether the value follows that before it
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
		return 0
	}
	n, k := float64(len(ranks)), float64(len(parts))
	rho := products / squares
	rho += k * (1 + 3*rho) / n
	if rho < 1/math.Sqrt(n) {
		return 0
	}
	return math.Min(rho, mostCorrelated)
}

// sized describes the changes that are large enough.
func sized(x []float64, points []int, from int, p []float64, sure Sureness) []Change {
	parts := segments(x, points, from)
	rho := autocorrelation(parts)
	var changes []Change
	for i, at := range points {
		before, after := parts[i], parts[i+1]
		c := Change{At: at, P: p[i], Delta: CliffDelta(before, after, 0.95)}
		c.Before, c.After = MedianInterval(before, 0.95), MedianInterval(after, 0.95)
		if math.Abs(c.Delta.Value) >= sure.Delta && apart(c.Before.Value, c.After.Value, sure.Ratio) {
			c.Ratio, c.Shift = RatioOfMedians(before, after, 0.95), shift(c, before, after, rho)
			changes = append(changes, c)
		}
	}
	return changes
}

// shift tests how far two medians are apart. The standard error of a median of normal values is √(π/2) times that of
// their mean. There are as many degrees of freedom as independent values would have whose standard deviation was as well
// known: autocorrelated ones count for less, and the median absolute deviation is as good as 37 of 100 values (Rousseeuw
// and Croux, Journal of the American Statistical Association 88, 1993).
func shift(c Change, before, after []float64, rho float64) float64 {
	const efficiency = 0.37
	s1, s2 := Spread(before), Spread(after)
	n1, n2 := float64(c.Before.N), float64(c.After.N)
	variance := math.Pi / 2 * inflation(rho) * (s1*s1/n1 + s2*s2/n2)
	t := math.Abs(c.After.Value-c.Before.Value) / math.Sqrt(variance)
	return studentTail(t, math.Max(1, efficiency*(n1+n2)/inflation(rho)-2))
}

// apart tells whether one of two values that are not negative is at least so many times the other.
func apart(a, b, ratio float64) bool {
	low, high := math.Min(a, b), math.Max(a, b)
	return high > low && (low <= 0 || high/ratio >= low)
}
