// SPDX-License-Identifier: Apache-2.0

package text

import (
	"math"
	"strconv"
	"strings"
)

// Digits formats a number with three significant digits, without an exponent and without trailing zeros.
func Digits(v float64) string {
	size := math.Abs(v)
	switch {
	case size == 0:
		return "0"
	case size >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	decimals := min(2-int(math.Floor(math.Log10(size))), 12)
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Seconds formats a time in seconds with three significant digits, in a unit from ns to days.
func Seconds(v float64) string {
	switch size := math.Abs(v); {
	case size == 0:
		return "0 s"
	case size < 0.9995e-6:
		return Digits(v*1e9) + " ns"
	case size < 0.9995e-3:
		return Digits(v*1e6) + " µs"
	case size < 0.9995:
		return Digits(v*1e3) + " ms"
	case size < 120:
		return Digits(v) + " s"
	case size < 7200:
		return Digits(v/60) + " min"
	case size < 172_800:
		return Digits(v/3600) + " h"
	}
	return Digits(v/86_400) + " d"
}

// Percent formats a share with two significant digits. A share above zero is never written as zero, and one below one never as one.
func Percent(share float64) string {
	switch p := share * 100; {
	case p > 0 && p < 0.01:
		return "<0.01 %"
	case p > 99.9 && p < 100:
		return ">99.9 %"
	case math.Abs(p) >= 9.95:
		return strconv.FormatFloat(p, 'f', 0, 64) + " %"
	default:
		return strconv.FormatFloat(p, 'g', 2, 64) + " %"
	}
}
