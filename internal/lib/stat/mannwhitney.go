// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"cmp"
	"math"
	"slices"
)

// exactUpTo is the number of values, of both samples together, up to which the exact distribution of U is computed.
// There are 1.4e11 ways to draw 20 of 40, which a float64 represents exactly.
const exactUpTo = 40

// A Comparison is the Mann-Whitney test of two samples.
type Comparison struct {
	U     float64 // pairs in which the second sample's value is greater; ties count half
	P     float64 // two-sided: the chance of a U at least as far from its mean for equal distributions
	Exact bool    // P is computed exactly, not approximated
	N1    int
	N2    int
}

// MannWhitney compares two samples by their ranks: Mann and Whitney, Annals of Mathematical Statistics 18, 1947. With
// at most 40 values the distribution of U is computed exactly, given the ties. With more it is normal, with the
// corrections for ties and continuity of Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 3rd ed.
// 2014, 4.1. P is twice the smaller tail, at most 1. U and P are NaN when a sample is empty.
func MannWhitney(first, second []float64) Comparison { return mannWhitney(first, second, 1) }

// mannWhitney also takes the factor by which the variance of U exceeds that of independent values.
func mannWhitney(first, second []float64, inflation float64) Comparison {
	x, y := finite(first), finite(second)
	c := Comparison{U: math.NaN(), P: math.NaN(), N1: len(x), N2: len(y)}
	if c.N1 == 0 || c.N2 == 0 {
		return c
	}
	ranks := doubledRanks(slices.Concat(x, y))
	sum := 0.0
	for _, r := range ranks[c.N1:] {
		sum += float64(r) / 2
	}
	c.U = sum - float64(c.N2)*float64(c.N2+1)/2
	if len(ranks) <= exactUpTo && inflation == 1 {
		c.P, c.Exact = exactP(ranks, c.N2, int(math.Round(2*sum))), true
		return c
	}
	c.P = normalP(c.U, c.N1, c.N2, ranks, inflation)
	return c
}

// sortBy sorts indexes by the values that they have. Equal values keep their order.
func sortBy(order []int, values []float64) {
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
}

// doubledRanks returns twice the rank of each value, so that the mean rank of ties is an integer.
func doubledRanks(x []float64) []int {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	sortBy(order, x)
	ranks := make([]int, len(x))
	for from := 0; from < len(x); {
		to := from
		for to < len(x) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			ranks[i] = from + 1 + to // twice the mean of from+1 ... to
		}
		from = to
	}
	return ranks
}

// exactP counts the ways to draw m of the doubled ranks, by their sum.
func exactP(ranks []int, m, sum int) float64 {
	total := 0
	for _, r := range ranks {
		total += r
	}
	ways := make([][]float64, m+1) // number of ways to draw so many with that sum
	for i := range ways {
		ways[i] = make([]float64, total+1)
	}
	ways[0][0] = 1
	highest := 0
	for _, r := range ranks {
		highest += r
		for k := m; k > 0; k-- {
			for s := highest; s >= r; s-- {
				ways[k][s] += ways[k-1][s-r]
			}
		}
	}
	var all, low, high float64
	for s, w := range ways[m] {
		all += w
		if s <= sum {
			low += w
		}
		if s >= sum {
			high += w
		}
	}
	return math.Min(1, 2*math.Min(low, high)/all)
}

func normalP(u float64, n1, n2 int, ranks []int, inflation float64) float64 {
	a, b := float64(n1), float64(n2)
	n := a + b
	counts := make(map[int]float64)
	for _, r := range ranks {
		counts[r]++
	}
	ties := 0.0
	for _, t := range counts {
		ties += t * (t*t - 1)
	}
	variance := a * b / 12 * (n + 1 - ties/(n*(n-1))) * inflation
	if variance <= 0 {
		return 1 // all values are equal
	}
	distance := math.Max(0, math.Abs(u-a*b/2)-0.5)
	return math.Min(1, math.Erfc(distance/math.Sqrt(2*variance)))
}

// cliffDelta is the probability that a value of after is greater than one of before, minus the probability of the
// opposite. It is from -1 to 1, and 0 when neither is greater. The interval is Feng and Cliff's asymmetric one (Journal
// of Modern Applied Statistical Methods 3(2), 2004), which needs two values in each sample. N counts both.
func cliffDelta(before, after []float64, level float64) Interval {
	x, y := Sorted(before), Sorted(after)
	out := unknown(level, len(x)+len(y))
	if len(x) == 0 || len(y) == 0 {
		return out
	}
	nx, ny := float64(len(x)), float64(len(y))
	fromY, different := dominance(y, x) // for each y over all x
	fromX, _ := dominance(x, y)
	d := 0.0
	for _, v := range fromY {
		d += v
	}
	d = math.Max(-1, math.Min(1, d/ny))
	out.Value, out.Low, out.High = d, -1, 1
	if len(x) < 2 || len(y) < 2 {
		return out
	}
	z := studentQuantile(level, nx+ny-2)
	if math.Abs(d) > 1-1e-12 { // the samples do not overlap; the variance is meaningless
		n := math.Min(nx, ny)
		edge := (n - z*z) / (n + z*z)
		if d > 0 {
			out.Low = edge
		} else {
			out.High = -edge
		}
		return out
	}
	var vy, vx float64
	for _, v := range fromY {
		vy += (v - d) * (v - d)
	}
	for _, v := range fromX {
		vx += (v + d) * (v + d)
	}
	all := different - nx*ny*d*d // sum of squares over the single pairs
	variance := (nx*nx*vy + ny*ny*vx - all) / (nx * ny * (nx - 1) * (ny - 1))
	// The estimate is unbiased, so it may be negative. This is Cliff's lower limit.
	variance = math.Max(variance, (1-d*d)/(nx*ny-1))
	s2 := z * z * variance
	root := math.Sqrt(s2 * ((1-d*d)*(1-d*d) + s2))
	out.Low = math.Max(-1, (d-d*d*d-root)/(1-d*d+s2))
	out.High = math.Min(1, (d-d*d*d+root)/(1-d*d+s2))
	return out
}

// dominance returns for each value of x the fraction of y below it minus the fraction above it. It also returns the
// number of pairs that differ. Both inputs are sorted.
func dominance(x, y []float64) (shares []float64, different float64) {
	shares = make([]float64, len(x))
	below, notAbove := 0, 0
	for i, v := range x {
		for below < len(y) && y[below] < v {
			below++
		}
		for notAbove < len(y) && y[notAbove] <= v {
			notAbove++
		}
		above := len(y) - notAbove
		shares[i] = float64(below-above) / float64(len(y))
		different += float64(below + above)
	}
	return shares, different
}
