// SPDX-License-Identifier: Apache-2.0

package stat

import "math"

// NormalQuantile returns the inverse of the standard normal distribution. It is NaN outside 0 to 1.
func NormalQuantile(p float64) float64 { return -math.Sqrt2 * math.Erfcinv(2*p) }

// studentTail returns the probability that Student's t with df degrees of freedom is beyond t on either side: DLMF
// 8.17.
func studentTail(t, df float64) float64 {
	if math.IsNaN(t) || df <= 0 {
		return math.NaN()
	}
	if math.IsInf(t, 0) {
		return 0
	}
	return incompleteBeta(df/2, 0.5, df/(df+t*t))
}

// studentQuantile returns the t that is exceeded on either side with a probability of 1-level.
func studentQuantile(level, df float64) float64 {
	if df <= 0 || level <= 0 || level >= 1 {
		return math.NaN()
	}
	low, high := 0.0, 1.0
	for studentTail(high, df) > 1-level {
		low, high = high, 2*high
	}
	for range 100 {
		middle := low + (high-low)/2
		if studentTail(middle, df) > 1-level {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// fisherTail returns the probability that Fisher's F with these degrees of freedom exceeds f: DLMF 8.17. It is NaN for
// 0/0, when a model leaves nothing.
func fisherTail(f, df1, df2 float64) float64 {
	if math.IsNaN(f) || df1 <= 0 || df2 <= 0 {
		return math.NaN()
	}
	if math.IsInf(f, 1) {
		return 0
	}
	return incompleteBeta(df2/2, df1/2, df2/(df2+df1*math.Max(0, f)))
}

// incompleteBeta returns the regularised incomplete beta function, by its continued fraction (DLMF 8.17.22) and Lentz's
// method.
func incompleteBeta(a, b, x float64) float64 {
	if x <= 0 {
		return 0
	}
	if x >= 1 {
		return 1
	}
	if x > (a+1)/(a+b+2) { // the fraction converges faster on the other side
		return 1 - incompleteBeta(b, a, 1-x)
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab-la-lb+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	away := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	f, c, d := 1.0, 1.0, 0.0
	for i := range 500 {
		m := float64(i / 2)
		var numerator float64
		switch {
		case i == 0:
			numerator = 1
		case i%2 == 0:
			numerator = m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		default:
			numerator = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		d = 1 / away(1+numerator*d)
		c = away(1 + numerator/c)
		f *= c * d
		if math.Abs(1-c*d) < 1e-15 {
			break
		}
	}
	return front * (f - 1)
}
