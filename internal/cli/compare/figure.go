// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"strings"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/stat"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/compare"
)

// scales are units of time and size that a figure is shown in, the largest first.
var scales = map[string][]struct {
	from, by float64
	unit     string
}{
	"s":     {{1, 1, "s"}, {1e-3, 1e3, "ms"}, {1e-6, 1e6, "us"}, {0, 1e9, "ns"}},
	"bytes": {{1 << 30, 1. / (1 << 30), "GiB"}, {1 << 20, 1. / (1 << 20), "MiB"}, {1 << 10, 1. / (1 << 10), "KiB"}, {0, 1, "B"}},
}

// scaled returns a factor and a unit in which values of about this size are shown.
func scaled(v float64, unit string) (float64, string) {
	what, per, divided := strings.Cut(unit, "/")
	switch what {
	case "seconds":
		what = "s"
	case "operations_per_second":
		what = "ops/s"
	case "bytes_per_second":
		what = "bytes/s"
	}
	if divided {
		per = "/" + per
	}
	if what == "s" && per == "/s" { // seconds in each second have no unit of time
		return 1, "s/s"
	}
	for _, s := range scales[what] {
		if math.Abs(v) >= s.from && v != 0 {
			return s.by, s.unit + per
		}
	}
	return 1, what + per
}

// figure formats an estimate with its interval.
func figure(i stat.Interval, by float64) string {
	if i.N == 0 {
		return "-"
	}
	s := plain(i.Value * by)
	if i.Bounded() && i.Low < i.High {
		s += " [" + plain(i.Low*by) + ", " + plain(i.High*by) + "]"
	}
	return s
}

// plain formats a figure, and zero without digits.
func plain(v float64) string {
	if v == 0 {
		return "0"
	}
	return analysis.Figure(v)
}

// changeText formats a change with its interval. A change that may be noise is "~" with its interval.
func changeText(row compare.Row, base int, c compare.Change) string {
	value := compare.Percent(c.Ratio.Value)
	if math.IsNaN(c.Ratio.Value) && row.Cells[base].Median.Value == 0 {
		value = "from 0"
	}
	switch c.Verdict {
	case compare.Missing:
		return "-"
	case compare.Noise:
		value = "~"
	case compare.TooFew:
		value = "(" + value + ")"
	}
	if c.Ratio.Bounded() && c.Ratio.Low < c.Ratio.High {
		value += " [" + compare.Percent(c.Ratio.Low) + ", " + compare.Percent(c.Ratio.High) + "]"
	}
	return value
}

// pText formats a corrected P.
func pText(c compare.Change) string {
	switch {
	case math.IsNaN(c.Corrected):
		return "-"
	case c.Corrected < 0.001:
		return fmt.Sprintf("%.0e", c.Corrected)
	}
	return fmt.Sprintf("%.3f", c.Corrected)
}

// detectText formats the minimal detectable change.
func detectText(c compare.Change) string {
	switch {
	case math.IsInf(c.Detectable, 0):
		return "none"
	case math.IsNaN(c.Detectable):
		return "-"
	}
	return strings.TrimPrefix(compare.Percent(c.Detectable), "+")
}

func nText(row compare.Row, base, j int) string {
	return fmt.Sprintf("%d+%d", len(row.Cells[base].Values), len(row.Cells[j].Values))
}

// verdictText says what a verdict means where it is not plain from the change.
func verdictText(c compare.Change) string {
	switch c.Verdict {
	case compare.Noise:
		return ""
	case compare.Refused:
		return "no verdict: " + strings.Join(c.Explains, ", ")
	}
	if len(c.Explains) > 0 && c.Verdict.Sure() {
		return string(c.Verdict) + " (forced: " + strings.Join(c.Explains, ", ") + ")"
	}
	return string(c.Verdict)
}

// others lists the groups that are compared with the baseline.
func others(t *compare.Table) []int {
	var list []int
	for j := range t.Groups {
		if j != t.Baseline {
			list = append(list, j)
		}
	}
	return list
}

// per says what counters are divided by.
func per(t *compare.Table) string {
	switch t.Per {
	case 0:
		return "per second"
	case 1:
		return "per operation"
	}
	return fmt.Sprintf("per %g operations", t.Per)
}

// counts counts the changes by verdict.
func counts(t *compare.Table, j int) map[compare.Verdict]int {
	n := map[compare.Verdict]int{}
	for _, r := range t.Rows {
		n[r.Cells[j].Change.Verdict]++
	}
	return n
}

// summary is a sentence about the verdicts of a group.
func summary(t *compare.Table, j int) string {
	n := counts(t, j)
	var parts []string
	for _, v := range []struct {
		verdict compare.Verdict
		what    string
	}{
		{compare.Better, "better"}, {compare.Worse, "worse"}, {compare.Changed, "changed"}, {compare.Noise, "without a change"},
		{compare.TooFew, "with too few repetitions"}, {compare.Refused, "without a verdict"}, {compare.Missing, "not measured in both"},
	} {
		if n[v.verdict] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[v.verdict], v.what))
		}
	}
	return fmt.Sprintf("%s: %s.", text.Plural(len(t.Rows), "metric", "metrics"), strings.Join(parts, ", "))
}

// method is a sentence about the statistics of a table.
func method(t *compare.Table) string {
	return fmt.Sprintf("Medians have their exact 95 %% interval (from 6 repetitions on). The change is that of the medians. "+
		"p is that of the Mann-Whitney test, corrected for %d tests; ~ means that no change was found at p <= %g. "+
		"\"finds\" is the smallest change that this number of repetitions finds in 4 of 5 cases.", t.Tests, compare.Alpha)
}

// seconds formats a time with its unit.
func seconds(v float64, of float64) string {
	by, unit := scaled(of, "s")
	return plain(v*by) + " " + unit
}
