// SPDX-License-Identifier: Apache-2.0

package stat

import (
	"math"
	"slices"
)

// consistent scales the median absolute deviation of a normal distribution to its standard deviation. consistentMean
// does so for the mean absolute deviation.
const (
	consistent     = 1.4826022185056018 // 1/Φ⁻¹(3/4)
	consistentMean = 1.2533141373155003 // √(π/2)
)

// MAD returns the median absolute deviation from the median, without scaling.
func MAD(x []float64) float64 {
	m := Median(x)
	d := finite(x)
	for i, v := range d {
		d[i] = math.Abs(v - m)
	}
	return Median(d)
}

// Spread estimates the standard deviation robustly against outliers. It is the scaled [MAD], or the scaled mean
// absolute deviation where more than half of the values are equal (Iglewicz and Hoaglin, "How to Detect and Handle
// Outliers", ASQC 1993). It is zero when all are equal and NaN without values.
func Spread(x []float64) float64 {
	if s := consistent * MAD(x); s != 0 {
		return s
	}
	m, sum := Median(x), 0.0
	d := finite(x)
	for _, v := range d {
		sum += math.Abs(v-m) / float64(len(d))
	}
	return consistentMean * sum
}

// RobustZ returns how many robust standard deviations x is from the median of earlier values. It is NaN without earlier
// values, and infinite when all of them are equal and x differs.
func RobustZ(x float64, before []float64) float64 {
	m, s := Median(before), Spread(before)
	if x == m && s == 0 {
		return 0
	}
	return (x - m) / s
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

// resamples is the number of samples of a bootstrap. Efron and Tibshirani, "An Introduction to the Bootstrap", 1993,
// chapter 13, take as many for percentile intervals.
const resamples = 1000

// maxResampled bounds the values of a bootstrap. Beyond it intervals are narrow anyway, and every n-th value is taken.
const maxResampled = 2000

// RatioOfMedians estimates the median of after divided by that of before, with the percentile bootstrap interval (Efron
// and Tibshirani, chapter 13). It is unknown when the median of before is not positive.
func RatioOfMedians(before, after []float64, level float64) Interval {
	b, a := thin(Sorted(before)), thin(Sorted(after))
	out := unknown(level, len(b)+len(a))
	if len(b) == 0 || len(a) == 0 || Quantile(b, 0.5) <= 0 {
		return out
	}
	out.Value = Quantile(a, 0.5) / Quantile(b, 0.5)
	random := source()
	ratios := make([]float64, resamples)
	counts := make([]int32, max(len(a), len(b)))
	for i := range ratios {
		ratios[i] = resampledMedian(random.IntN, a, counts) / resampledMedian(random.IntN, b, counts)
		if math.IsNaN(ratios[i]) { // 0/0 has no meaning
			ratios[i] = out.Value
		}
	}
	// A resampled median of before may be zero. The ratio is then infinite and correctly sorts last.
	slices.Sort(ratios)
	tail := (1 - level) / 2
	out.Low, out.High = orderStatistic(ratios, tail), orderStatistic(ratios, 1-tail)
	return out
}

// resampledMedian returns the median of len(s) values drawn with replacement from s, which is sorted.
func resampledMedian(draw func(int) int, s []float64, counts []int32) float64 {
	counts = counts[:len(s)]
	clear(counts)
	for range s {
		counts[draw(len(s))]++
	}
	low, high := (len(s)-1)/2, len(s)/2 // ranks of the middle values
	seen, first := 0, math.NaN()
	for i, c := range counts {
		seen += int(c)
		if math.IsNaN(first) && seen > low {
			first = s[i]
		}
		if seen > high {
			return first/2 + s[i]/2
		}
	}
	return math.NaN()
}

// thin selects evenly spaced values of sorted ones when there are too many.
func thin(s []float64) []float64 {
	if len(s) <= maxResampled {
		return s
	}
	out := make([]float64, maxResampled)
	for i := range out {
		out[i] = s[int(float64(i)*float64(len(s)-1)/(maxResampled-1))]
	}
	return out
}

// orderStatistic returns a quantile without interpolation, so that infinite values do not spread.
func orderStatistic(sorted []float64, p float64) float64 {
	return sorted[min(len(sorted)-1, int(math.Round(p*float64(len(sorted)-1))))]
}
