// SPDX-License-Identifier: Apache-2.0

package stat

import "math"

// consistent scales the median absolute deviation of a normal distribution to its standard deviation. consistentMean
// does so for the mean absolute deviation.
const (
	consistent     = 1.4826022185056018 // 1/Φ⁻¹(3/4)
	consistentMean = 1.2533141373155003 // √(π/2)
)

// mad returns the median absolute deviation from the median, without scaling.
func mad(x []float64) float64 {
	m := Median(x)
	d := finite(x)
	for i, v := range d {
		d[i] = math.Abs(v - m)
	}
	return Median(d)
}

// Spread estimates the standard deviation robustly against outliers. It is the scaled [mad], or the scaled mean
// absolute deviation where more than half of the values are equal (Iglewicz and Hoaglin, "How to Detect and Handle
// Outliers", ASQC 1993). It is zero when all are equal and NaN without values.
func Spread(x []float64) float64 {
	if s := consistent * mad(x); s != 0 {
		return s
	}
	m, sum := Median(x), 0.0
	d := finite(x)
	for _, v := range d {
		sum += math.Abs(v-m) / float64(len(d))
	}
	return consistentMean * sum
}

// Further tests whether x is one more value of a series, whose neighbours may depend on each other. It returns the
// distance from the median in standard deviations, and its two-sided P by Student's t of the prediction of a further
// value. The standard deviation is the robust or the usual one, whichever is larger. The degrees of freedom are those of
// the effective number of values, which is at least the number of parts that are known to be independent. The distance
// is NaN without values, and infinite when all of them are equal and x differs.
func Further(x float64, before []float64, independent int) (z, p float64) {
	all := finite(before)
	n := float64(len(all))
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	m, mean, squares := Median(all), 0.0, 0.0
	for _, v := range all {
		mean += v / n
	}
	for _, v := range all {
		squares += (v - mean) * (v - mean)
	}
	effective := math.Max(n/inflation(autocorrelation([][]float64{all})), math.Min(n, float64(independent)))
	sd := Spread(all)
	if x == m {
		return 0, 1
	}
	if sd > 0 { // else all are equal, and the sum of squares is a rounding error
		sd = math.Max(sd, math.Sqrt(squares/math.Max(1, n-1)))
	}
	z = (x - m) / sd
	return z, studentTail(math.Abs(z)/math.Sqrt(1+1/effective), math.Max(1, effective-1))
}

// MedianInterval returns the median with an interval between two order statistics. It is the narrowest symmetric pair
// that covers the median at least at the level, for any distribution: David and Nagaraja, "Order Statistics", 3rd ed.
// 2003, 7.1. Level is the coverage of that pair. Fewer than 6 values have no interval at 95 %.
func MedianInterval(x []float64, level float64) Interval {
	s := Sorted(x)
	n := len(s)
	if n == 0 {
		return unknown(level, 0)
	}
	i := Interval{Value: Quantile(s, 0.5), Low: math.Inf(-1), High: math.Inf(1), Level: level, N: n}
	k, below := binomialTail(n, (1-level)/2)
	if k > 0 {
		i.Low, i.High, i.Level = s[k-1], s[n-k], 1-2*below
	}
	return i
}

// leastEffective is the number of independent values below which a median has no interval at 95 %.
const leastEffective = 6

// SerialMedianInterval is [MedianInterval] for values in the order of time. Neighbours may depend on each other, so the
// ranks of the two ends are as far from the middle as those of fewer, independent values ([serialInflation]). The ends
// are infinite if the values are worth fewer than 6 independent ones.
func SerialMedianInterval(x []float64, level float64) Interval {
	i := MedianInterval(x, level)
	if !i.Bounded() {
		return i
	}
	f := serialInflation(finite(x), medianMargin, math.Abs(i.Value))
	if f == 1 {
		return i
	}
	s, n := Sorted(x), float64(i.N)
	k, _ := binomialTail(i.N, (1-level)/2)
	lower := int((n+1)/2 - ((n+1)/2-float64(k))*math.Sqrt(f))
	if lower < 1 || n/f < leastEffective {
		i.Low, i.High = math.Inf(-1), math.Inf(1)
		return i
	}
	i.Low, i.High, i.Level = s[lower-1], s[i.N-lower], level
	return i
}

// binomialTail returns the largest k for which at most k-1 of n fair coins show heads with a probability of at most
// alpha, and that probability.
func binomialTail(n int, alpha float64) (k int, probability float64) {
	ln, _ := math.Lgamma(float64(n) + 1)
	term := func(j int) float64 {
		a, _ := math.Lgamma(float64(j) + 1)
		b, _ := math.Lgamma(float64(n-j) + 1)
		return math.Exp(ln - a - b - float64(n)*math.Ln2)
	}
	// Terms beyond 20 standard deviations are too small to change a float64.
	for k = max(0, n/2-int(10*math.Sqrt(float64(n)))-1); k <= n/2; k++ {
		next := probability + term(k)
		if next > alpha {
			return k, probability
		}
		probability = next
	}
	return n / 2, probability
}

// ratioOfMedians estimates the median of after divided by that of before, both in the order of time. The interval follows
// from those of the two medians by the method of variance estimates recovery, on logarithms: Zou and Donner, Statistics
// in Medicine 27, 2008. It is unknown when the median of before is not positive.
func ratioOfMedians(before, after []float64, level float64) Interval {
	b, a := SerialMedianInterval(before, level), SerialMedianInterval(after, level)
	out := unknown(level, b.N+a.N)
	if b.N == 0 || a.N == 0 || b.Value <= 0 {
		return out
	}
	out.Value, out.Low, out.High = a.Value/b.Value, math.Inf(-1), math.Inf(1)
	distance := func(from, to float64) float64 { return math.Log(to) - math.Log(math.Max(0, from)) } // infinite from zero
	if a.Value > 0 {
		out.Low = out.Value * math.Exp(-math.Hypot(distance(a.Low, a.Value), distance(b.Value, b.High)))
		out.High = out.Value * math.Exp(math.Hypot(distance(a.Value, a.High), distance(b.Low, b.Value)))
	}
	return out
}
