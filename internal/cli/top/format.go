// SPDX-License-Identifier: Apache-2.0

package top

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/teescope/teescope/internal/lib/text"
)

const absent = "-"

// number formats a value in at most five columns: three digits, and a unit if needed.
func number(v float64) string { return digits(v, 9.95, 999.5) }

// digits formats a value: with one decimal below one bound, as a whole number below another one, and with a unit above.
func digits(v, decimal, whole float64) string {
	switch {
	case !known(v):
		return absent
	case v == 0:
		return "0"
	case v < decimal:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v < whole:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return scaled(v, 1000, "kMGTPE")
}

// count formats a number of things. Up to 9999 it is exact.
func count(v float64) string {
	if known(v) && v < 9999.5 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return number(v)
}

// percent formats a fraction of one CPU. Several CPUs have several hundred per cent.
func percent(v float64) string { return digits(100*v, 99.95, 99999.5) }

// size formats bytes in powers of 1024, as top and free do.
func size(v float64) string {
	switch {
	case !known(v):
		return absent
	case v < 1024:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return scaled(v, 1024, "KMGTPE")
}

// scaled formats a value with three digits and a unit.
func scaled(v, base float64, units string) string {
	i := -1
	for i < len(units)-1 && (i < 0 || v >= 999.5) {
		v /= base
		i++
	}
	digits := 0
	switch {
	case v < 9.995:
		digits = 2
	case v < 99.95:
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + units[i:i+1]
}

// seconds formats a time.
func seconds(v float64) string {
	if !known(v) || math.IsInf(v, 0) {
		return absent
	}
	return text.Seconds(v)
}

// ago formats the time since an event.
func ago(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return d.Truncate(time.Second).String()
}

// left and right cut or pad a text to a width in columns of the terminal.
func left(s string, width int) string {
	s = cut(s, width)
	return s + spaces(width-ansi.StringWidth(s))
}

func right(s string, width int) string {
	s = cut(s, width)
	return spaces(width-ansi.StringWidth(s)) + s
}

func cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	return ansi.Truncate(s, width, "…")
}

// clip shortens a word without a mark.
func clip(s string, width int) string { return ansi.Truncate(s, width, "") }

func spaces(n int) string { return strings.Repeat(" ", max(n, 0)) }

// between puts two texts at the ends of a line. The right one is dropped first when both do not fit.
func between(l, r string, width int) string {
	free := width - ansi.StringWidth(l) - ansi.StringWidth(r)
	if free < 1 {
		return left(l, width)
	}
	return l + spaces(free) + r
}
