// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"math"
	"strings"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/window"
	"github.com/teescope/teescope/internal/lib/text"
)

// Box is Tukey's box plot of one metric of one workload in the window. Its whiskers are at most 1.5 interquartile
// ranges long.
type Box struct {
	Metric      string  `json:"metric"`
	Unit        string  `json:"unit"`
	Workload    string  `json:"workload"` // "" is the machine
	Instance    string  `json:"instance,omitempty"`
	N           int     `json:"n"`
	Outliers    int     `json:"outliers"` // values beyond the whiskers
	Min         float64 `json:"min"`
	WhiskerLow  float64 `json:"whisker_low"`
	Q1          float64 `json:"q1"`
	Median      float64 `json:"median"`
	Q3          float64 `json:"q3"`
	WhiskerHigh float64 `json:"whisker_high"`
	Max         float64 `json:"max"`
}

// WithWindows adds the box plots of the window to the report.
func (r Report) WithWindows(stats []window.Stat) Report {
	r.Windows = []Box{}
	for _, s := range stats {
		b := s.Box
		r.Windows = append(r.Windows, Box{
			Metric: s.Metric.Name, Unit: unitOf(s.Metric.Unit), Workload: s.Workload, Instance: s.Instance, N: b.N, Outliers: b.Outlying,
			Min: b.Min, WhiskerLow: b.WhiskerLow, Q1: b.Q1, Median: b.Median, Q3: b.Q3, WhiskerHigh: b.WhiskerHigh, Max: b.Max,
		})
	}
	return r
}

// unitOf returns the unit of a window as figures write it: "calls/s" is "1/s", and seconds per second are processors.
func unitOf(unit string) string {
	switch {
	case unit == "seconds/s":
		return "s/s"
	case strings.HasSuffix(unit, "/s") && unit != "bytes/s":
		return "1/s"
	}
	return unit
}

// plotColumns is the width of a box plot.
const plotColumns = 40

// plot draws a box plot in one line, from the smallest value at the left to the largest at the right. The box around
// the median consists of blocks, the whiskers of lines, and outliers of dots.
func (b Box) plot() string {
	span := b.Max - b.Min
	if !(span > 0) || math.IsInf(span, 0) {
		return strings.Repeat(" ", plotColumns/2-1) + "┃" // one value
	}
	at := func(v float64) int { return int(math.Round((v - b.Min) / span * (plotColumns - 1))) }
	line := []rune(strings.Repeat(" ", plotColumns))
	draw := func(from, to float64, r rune) {
		for i := at(from); i <= at(to); i++ {
			line[i] = r
		}
	}
	draw(b.WhiskerLow, b.WhiskerHigh, '─')
	line[at(b.WhiskerLow)], line[at(b.WhiskerHigh)] = '├', '┤'
	draw(b.Q1, b.Q3, '█')
	line[at(b.Median)] = '┃'
	if b.Min < b.WhiskerLow {
		line[0] = '·'
	}
	if b.Max > b.WhiskerHigh {
		line[plotColumns-1] = '·'
	}
	return strings.TrimRight(string(line), " ")
}

// windows writes the box plots by workload.
func (t terminal) windows(r Report) {
	if r.Windows == nil {
		return
	}
	t.line()
	t.styled(bold, "", fmt.Sprintf("Windows of %s: each value is of one scrape", span(r.Window)))
	if len(r.Windows) == 0 {
		t.prose("- ", "none: fewer than five samples of each metric")
	}
	for _, target := range targetsOf(r.Windows) {
		t.line()
		t.line(t.paint(cyan, subject(analysis.Finding{Workload: target[0], Instance: target[1]})))
		for _, b := range r.Windows {
			if b.Workload == target[0] && b.Instance == target[1] {
				t.prose("   ", fmt.Sprintf("%s: median %s, half of all %s to %s, n=%d, %s", b.Metric, Value(b.Median, b.Unit),
					Value(b.Q1, b.Unit), Value(b.Q3, b.Unit), b.N, text.Plural(b.Outliers, "outlier", "outliers")))
				t.line("     ", t.paint(dim, fmt.Sprintf("%10s %-*s %s", Value(b.Min, b.Unit), plotColumns, b.plot(), Value(b.Max, b.Unit))))
			}
		}
	}
}

// targetsOf returns the workloads and instances of the box plots, in order.
func targetsOf(all []Box) [][2]string {
	var list [][2]string
	seen := map[[2]string]bool{}
	for _, b := range all {
		if p := [2]string{b.Workload, b.Instance}; !seen[p] {
			seen[p] = true
			list = append(list, p)
		}
	}
	return list
}
