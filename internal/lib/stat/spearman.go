// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"slices"
)

// A Correlation is Spearman's rank correlation of pairs.
type Correlation struct {
	Rho   Interval // from -1 to 1; NaN with fewer than 3 pairs, and when a side is constant
	P     float64  // two-sided: the chance of a correlation at least as strong when there is none
	Exact bool     // P is computed over all orders, not approximated
}

// orders is the number of pairs up to which all orders are computed: 8! is 40,320.
const orders = 8

// Spearman correlates the ranks of pairs: Spearman, American Journal of Psychology 15, 1904. Ties have their mean rank.
// Pairs with a value that is not finite are skipped. With at most 8 pairs, P is computed over all orders of one side,
// given the ties. With more, it is that of Student's t with n-2 degrees of freedom. The interval uses Fisher's
// transformation with the standard error √((1+ρ²/2)/(n-3)) of Bonett and Wright, Psychometrika 65(1), 2000. It needs
// four pairs.
func Spearman(x, y []float64, level float64) Correlation {
	var a, b []float64
	for i := range min(len(x), len(y)) {
		if isFinite(x[i]) && isFinite(y[i]) {
			a, b = append(a, x[i]), append(b, y[i])
		}
	}
	c := Correlation{Rho: unknown(level, len(a)), P: math.NaN()}
	if len(a) < 3 {
		return c
	}
	ra, rb := doubledRanks(a), doubledRanks(b)
	rho := product(ra, rb)
	if math.IsNaN(rho) {
		return c
	}
	c.Rho.Value, c.Rho.Low, c.Rho.High = rho, -1, 1
	n := float64(len(a))
	if len(a) <= orders {
		c.P, c.Exact = permutations(ra, rb), true
	} else {
		c.P = studentTail(rho*math.Sqrt((n-2)/math.Max(0, 1-rho*rho)), n-2)
	}
	if len(a) > 3 {
		// At 1 the transformation is infinite. The interval is then that of the next possible value, with two
		// neighbours exchanged.
		most := 1 - 12/(n*(n*n-1))
		inner := min(most, max(-most, rho))
		z, half := math.Atanh(inner), NormalQuantile(0.5+level/2)*math.Sqrt((1+inner*inner/2)/(n-3))
		c.Rho.Low, c.Rho.High = min(rho, math.Tanh(z-half)), max(rho, math.Tanh(z+half))
	}
	return c
}

// product returns Pearson's correlation of ranks. It is NaN when a side is constant.
func product(a, b []int) float64 {
	mean := float64(len(a) + 1) // of doubled ranks, with any ties
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i])-mean, float64(b[i])-mean
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	if aa == 0 || bb == 0 {
		return math.NaN()
	}
	return min(1, max(-1, ab/math.Sqrt(aa*bb)))
}

// permutations returns the fraction of all orders of b with a correlation at least as strong. It uses Heap's algorithm
// and updates the sum of products at each step.
func permutations(a, b []int) float64 {
	n, sum := len(a), 0
	for i := range a {
		sum += a[i] * b[i]
	}
	middle := n * (n + 1) * (n + 1) // mean of the sum over all orders; doubled ranks have the mean n+1
	seen := max(sum-middle, middle-sum)
	b = slices.Clone(b)
	strong, all := 1, 1
	swaps := make([]int, n)
	for i := 1; i < n; {
		if swaps[i] >= i {
			swaps[i] = 0
			i++
			continue
		}
		from := 0
		if i%2 == 1 {
			from = swaps[i]
		}
		sum += (a[from] - a[i]) * (b[i] - b[from])
		b[from], b[i] = b[i], b[from]
		if all++; max(sum-middle, middle-sum) >= seen {
			strong++
		}
		swaps[i]++
		i = 1
	}
	return float64(strong) / float64(all)
}

// Holm corrects the P values of several tests: Holm, Scandinavian Journal of Statistics 6(2), 1979. The chance of any
// false result among them is then as for one test, however the tests depend on each other. NaN is a test that was not
// made. It stays NaN and does not count.
func Holm(p []float64) []float64 {
	var order []int
	out := make([]float64, len(p))
	for i, v := range p {
		out[i] = math.NaN()
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	sortBy(order, p)
	highest := 0.0
	for rank, i := range order {
		highest = math.Min(1, math.Max(highest, p[i]*float64(len(order)-rank)))
		out[i] = highest
	}
	return out
}
