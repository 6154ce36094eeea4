// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Shift estimates by how much the values of after exceed those of before: the median of all differences of a pair, with
// the interval that the Mann-Whitney test follows from: Hollander, Wolfe and Chicken, "Nonparametric Statistical
// Methods", 3rd ed. 2014, 4.2 and 4.3. It is exact for at most 40 independent values, for distributions that differ by a
// shift. Fewer than 4 and 4 values have no interval at 95 %. N counts both samples.
func Shift(before, after []float64, level float64) Interval {
	return pairwise(before, after, level, func(x, y float64) (low, high float64) { return y - x, y - x })
}

// Factor estimates the median of after divided by that of before. The interval is that of [Shift] on logarithms: that of
// a factor between the two distributions. It is widened where it does not contain the ratio of the medians. It is
// unknown with negative values, and when the median of before is zero.
func Factor(before, after []float64, level float64) Interval {
	negative := func(v float64) bool { return v < 0 }
	b, a := Median(before), Median(after)
	if b <= 0 || slices.ContainsFunc(finite(before), negative) || slices.ContainsFunc(finite(after), negative) {
		return unknown(level, len(finite(before))+len(finite(after)))
	}
	i := pairwise(before, after, level, func(x, y float64) (low, high float64) {
		if x == 0 && y == 0 {
			return 0, math.Inf(1) // every factor is possible
		}
		return y / x, y / x
	})
	i.Value = a / b
	i.Low, i.High = math.Min(i.Low, i.Value), math.Max(i.High, i.Value)
	return i
}

// pairwise returns the median and the interval of a value of all pairs. The two results are its bounds.
func pairwise(before, after []float64, level float64, of func(x, y float64) (low, high float64)) Interval {
	x, y := finite(before), finite(after)
	if len(x) == 0 || len(y) == 0 {
		return unknown(level, len(x)+len(y))
	}
	lows, highs := make([]float64, 0, len(x)*len(y)), make([]float64, 0, len(x)*len(y))
	for _, a := range x {
		for _, b := range y {
			low, high := of(a, b)
			lows, highs = append(lows, low), append(highs, high)
		}
	}
	slices.Sort(lows)
	slices.Sort(highs)
	i := Interval{Value: Quantile(lows, 0.5), Low: math.Inf(-1), High: math.Inf(1), Level: level, N: len(x) + len(y)}
	if k, tail := criticalU(len(x), len(y), (1-level)/2); k > 0 {
		i.Low, i.High, i.Level = lows[k-1], highs[len(highs)-k], 1-2*tail
	}
	return i
}

// criticalU returns the largest k for which U of equal distributions is at most k-1 with a probability of at most alpha,
// and that probability. It is 0 if there is none.
func criticalU(n1, n2 int, alpha float64) (k int, tail float64) {
	pairs := float64(n1) * float64(n2)
	if n1+n2 > exactUpTo {
		sd := math.Sqrt(pairs * float64(n1+n2+1) / 12)
		k = max(0, int(math.Floor(pairs/2+NormalQuantile(alpha)*sd+0.5)))
		return k, math.Erfc((pairs/2+0.5-float64(k))/(sd*math.Sqrt2)) / 2
	}
	// ways[i][u] is the number of orders of i values of the second sample among those of the first with that U.
	ways := make([][]float64, n2+1)
	for i := range ways {
		ways[i] = make([]float64, n1*n2+1)
	}
	ways[0][0] = 1
	for rank := range n1 + n2 {
		for i := min(n2, rank+1); i > 0; i-- {
			below := rank - i + 1 // values of the first sample below the i-th of the second at this rank
			if below > n1 {
				continue
			}
			for u := n1 * n2; u >= below; u-- {
				ways[i][u] += ways[i-1][u-below]
			}
		}
	}
	all := 0.0
	for _, w := range ways[n2] {
		all += w
	}
	for k < len(ways[n2]) && tail+ways[n2][k]/all <= alpha {
		tail += ways[n2][k] / all
		k++
	}
	return k, tail
}

// LeastP returns the smallest P that [MannWhitney] can give for two samples of these sizes: that of samples that do not
// overlap.
func LeastP(n1, n2 int) float64 {
	if n1+n2 > exactUpTo {
		return normalP(float64(n1)*float64(n2), n1, n2, nil, 1)
	}
	a, _ := math.Lgamma(float64(n1) + 1)
	b, _ := math.Lgamma(float64(n2) + 1)
	all, _ := math.Lgamma(float64(n1+n2) + 1)
	return math.Min(1, 2*math.Exp(a+b-all))
}

// Detectable returns the smallest distance of two normal distributions, in their standard deviations, that [MannWhitney]
// detects at the level alpha with this power. It is infinite if samples of these sizes cannot give such a P. Up to 400
// pairs it is simulated, with an error of a few percent. Beyond, it follows from the test's efficiency of 3/π relative
// to Student's t.
func Detectable(n1, n2 int, alpha, power float64) float64 {
	k, _ := criticalU(n1, n2, alpha/2)
	if n1 == 0 || n2 == 0 || k == 0 {
		return math.Inf(1)
	}
	if n1*n2 > 400 {
		return (NormalQuantile(1-alpha/2) + NormalQuantile(power)) * math.Sqrt((1/float64(n1)+1/float64(n2))*math.Pi/3)
	}
	random := rand.New(rand.NewPCG(1, 2))
	needed := make([]float64, 2000) // the distance from which these samples are significant
	x, pairs := make([]float64, n1), make([]float64, n1*n2)
	for i := range needed {
		for j := range x {
			x[j] = random.NormFloat64()
		}
		for j := range n2 {
			y := random.NormFloat64()
			for l, v := range x {
				pairs[j*n1+l] = y - v
			}
		}
		slices.Sort(pairs)
		needed[i] = -pairs[k-1]
	}
	slices.Sort(needed)
	return math.Max(0, Quantile(needed, power))
}
