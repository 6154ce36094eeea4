// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"slices"
)

// minSegment is the minimum number of values in a segment. It lets the Mann-Whitney test of two segments reach one in a
// thousand, with a margin.
const minSegment = 8

// maxChangePoints is how many values [changePoints] uses, the newest ones. Without changes the computing time grows
// with the square of their number.
const maxChangePoints = 4096

// changePoints finds where the level of a series changes. It returns the indices of the values that begin a segment,
// except the first, in ascending order. Each segment has at least 8 values.
//
// It is PELT, the exact optimum of the sum of squares within segments plus a penalty for each change: Killick,
// Fearnhead and Eckley, Journal of the American Statistical Association 107, 2012. It segments the ranks of the values,
// so that single outliers and heavy tails are no changes (as Lung-Yut-Fong, Lévy-Leduc and Cappé do, Journal de la
// Société Française de Statistique 156(4), 2015). The penalty is 3 ln(n) times the variance within segments: the main
// term of the modified BIC of Zhang and Siegmund, Biometrics 63, 2007. It returns too many points when values depend on
// previous ones. [Changes] tests them.
func changePoints(x []float64) []int {
	values, index := observed(x)
	if len(values) < 2*minSegment {
		return nil
	}
	ranks := ranksOf(values)
	if slices.Min(ranks) == slices.Max(ranks) {
		return nil // all values are equal
	}
	points := pelt(ranks, 3*math.Log(float64(len(ranks)))*within(ranks), minSegment)
	for i := range points {
		points[i] = index[points[i]]
	}
	return points
}

// observed returns the newest finite values and their indices.
func observed(x []float64) (values []float64, index []int) {
	skip := max(0, len(x)-maxChangePoints)
	for i, v := range x[skip:] {
		if isFinite(v) {
			values, index = append(values, v), append(index, skip+i)
		}
	}
	return values, index
}

// ranksOf returns the ranks minus their mean. Ties have their mean rank.
func ranksOf(x []float64) []float64 {
	ranks := make([]float64, len(x))
	for i, r := range doubledRanks(x) {
		ranks[i] = float64(r-len(x)-1) / 2
	}
	return ranks
}

// within estimates the variance of ranks within segments from differences, which changes hardly affect. For
// autoregressive noise of the first order, differences of neighbours have the variance 2σ²(1-ρ) and those of second
// neighbours 2σ²(1-ρ²). Their ratio minus 1 is ρ (Chakar, Lebarbier, Lévy-Leduc and Robin, Bernoulli 23(2), 2017). A
// negative ρ counts as 0.
func within(ranks []float64) float64 {
	v1, v2 := trimmedSquare(differences(ranks, 1)), trimmedSquare(differences(ranks, 2))
	if v1 < minVariance {
		return minVariance
	}
	rho := math.Min(math.Max(0, v2/v1-1), maxAutocorrelation)
	return v1 / 2 / (1 - rho)
}

// minVariance replaces the variance of ranks when nearly all neighbours are equal.
const minVariance = 0.25

// trimmedSquare estimates the variance of normal values with mean zero from the 95 % that are closest to zero. Changes
// affect only the others.
func trimmedSquare(x []float64) (mean float64) {
	squares := make([]float64, len(x))
	for i, v := range x {
		squares[i] = v * v
	}
	slices.Sort(squares)
	squares = squares[:len(squares)-len(squares)/20-1]
	for _, v := range squares {
		mean += v / float64(len(squares))
	}
	return mean / 0.759 // the variance of a normal value within that part
}

// maxAutocorrelation bounds the autocorrelation that is corrected. A series with a higher one has no stable level.
const maxAutocorrelation = 0.9

// inflation returns how much more the mean of autocorrelated values varies than that of independent ones: Bayley and
// Hammersley, Supplement to the Journal of the Royal Statistical Society 8(2), 1946.
func inflation(rho float64) float64 { return (1 + rho) / (1 - rho) }

func differences(x []float64, lag int) []float64 {
	d := make([]float64, 0, len(x))
	for i := lag; i < len(x); i++ {
		d = append(d, x[i]-x[i-lag])
	}
	return d
}

// pelt returns the ends of all segments of the optimal partition except the last.
func pelt(x []float64, penalty float64, least int) []int {
	n := len(x)
	sums, squares := make([]float64, n+1), make([]float64, n+1)
	for i, v := range x {
		sums[i+1], squares[i+1] = sums[i]+v, squares[i]+v*v
	}
	cost := func(from, to int) float64 {
		s := sums[to] - sums[from]
		return math.Max(0, squares[to]-squares[from]-s*s/float64(to-from))
	}
	best, last := make([]float64, n+1), make([]int, n+1)
	best[0] = -penalty
	never := n + 1
	prunedAt := make([]int, n+1) // from which end on a beginning is no longer a candidate
	for i := range prunedAt {
		prunedAt[i] = never
	}
	candidates := []int{0}
	for to := least; to <= n; to++ {
		best[to] = math.Inf(1)
		for _, from := range candidates {
			if v := best[from] + cost(from, to) + penalty; v < best[to] {
				best[to], last[to] = v, from
			}
		}
		// A candidate that loses against a change here by more than the penalty always loses, as soon as a segment that
		// begins here is long enough.
		kept := candidates[:0]
		for _, from := range candidates {
			if prunedAt[from] == never && best[from]+cost(from, to) >= best[to] {
				prunedAt[from] = to + least
			}
			if prunedAt[from] > to {
				kept = append(kept, from)
			}
		}
		candidates = kept
		if next := to - least + 1; next >= least {
			candidates = append(candidates, next) // a segment from it may end at to+1
		}
	}
	var points []int
	for at := last[n]; at > 0; at = last[at] {
		points = append([]int{at}, points...)
	}
	return points
}
