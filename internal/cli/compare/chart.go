// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/compare"
)

// The charts are inline SVG of this width, in units of CSS pixels. The names of rows take the space on the left.
const (
	width  = 900
	left   = 260
	right  = 60
	rowsOf = 22 // height of a row
)

// An axis maps values to horizontal or vertical positions.
type axis struct{ from, to, low, high float64 }

// at returns the position of a value.
func (a axis) at(v float64) float64 {
	if a.high <= a.low || math.IsInf(a.high-a.low, 0) {
		return (a.from + a.to) / 2
	}
	return a.from + (a.to-a.from)*(math.Max(a.low, math.Min(a.high, v))-a.low)/(a.high-a.low)
}

// ticks returns about n round values of an axis.
func (a axis) ticks(n int) []float64 {
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/float64(n))))
	if !(step > 0) || math.IsInf(step, 0) {
		return []float64{a.low}
	}
	for _, m := range []float64{2, 2.5, 2} {
		if (a.high-a.low)/step > float64(n) {
			step *= m
		}
	}
	var all []float64
	for i := math.Ceil(a.low / step); i*step <= a.high && len(all) < 3*n; i++ {
		all = append(all, i*step)
	}
	return all
}

// begin begins a chart that a screen reader reads as its description.
func begin(b *strings.Builder, height float64, description string) {
	fmt.Fprintf(b, `<svg viewBox="0 0 %d %.0f" width="%d" height="%.0f" role="img" aria-label="%s"><title>%s</title>`+"\n", width, height, width, height, text.HTML(description), text.HTML(description))
}

func label(b *strings.Builder, x, y float64, anchor, class, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" class="%s">%s</text>`, x, y, anchor, class, text.HTML(text.Short(text.Label(s), 60)))
}

func line(b *strings.Builder, x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`, x1, y1, x2, y2, class)
}

// scale draws a horizontal axis with its ticks.
func scale(b *strings.Builder, a axis, height float64, format func(float64) string) {
	for _, v := range a.ticks(6) {
		line(b, a.at(v), 4, a.at(v), height-20, "")
		label(b, a.at(v), height-6, "middle", "dim", format(v))
	}
}

// limits returns the smallest and the largest of values, with some space around them.
func limits(values []float64) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			low, high = math.Min(low, v), math.Max(high, v)
		}
	}
	if low > high {
		return 0, 1
	}
	margin := 0.05 * (high - low)
	if margin == 0 {
		margin = math.Max(math.Abs(high)*0.05, 1e-12)
	}
	return low - margin, high + margin
}

// mostLetters is the number of bytes of a label that fit left of a chart.
const mostLetters = 38

// titleOf names a metric and its unit, if the name does not say it.
func titleOf(m compare.Metric, unit string) string {
	if m.ID() == unit {
		return unit
	}
	return m.ID() + " (" + unit + ")"
}

// strip draws each repetition of an outcome as a dot, and the median with its interval.
func strip(b *strings.Builder, t *compare.Table, row compare.Row) {
	var all []float64
	for _, c := range row.Cells {
		all = append(all, c.Values...)
	}
	low, high := limits(all)
	by, unit := scaled(high, row.Metric.Unit)
	height := float64(rowsOf*(len(row.Cells)+1) + 30)
	a := axis{left, width - right, low, high}
	begin(b, height, fmt.Sprintf("%s in %s: each repetition, and the median with its 95 %% interval", row.Metric.ID(), unit))
	scale(b, a, height, func(v float64) string { return analysis.Figure(v * by) })
	label(b, left, 16, "start", "", titleOf(row.Metric, unit))
	for j, c := range row.Cells {
		y := float64((j+1)*rowsOf) + 16
		label(b, left-10, y+4, "end", "", text.Short(text.Label(t.Groups[j].Name), mostLetters))
		for _, v := range c.Values {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" fill-opacity="0.6" class="c%d"/>`, a.at(v), y, j%colours)
		}
		if c.Median.Bounded() {
			line(b, a.at(c.Median.Low), y+8, a.at(c.Median.High), y+8, "i")
		}
		if len(c.Values) > 0 {
			line(b, a.at(c.Median.Value), y-8, a.at(c.Median.Value), y+8, "i")
		}
		b.WriteByte('\n')
	}
	b.WriteString("</svg>\n")
}

// mostBars is the number of rows of the chart of changes: those with the smallest P.
const mostBars = 30

// forest draws the change of each metric with its interval, on the logarithm of the factor.
func forest(b *strings.Builder, t *compare.Table, j int) {
	var rows []compare.Row
	for _, row := range t.Rows {
		if c := row.Cells[j].Change; c.Ratio.Bounded() && c.Ratio.Value > 0 && c.Verdict != compare.Refused {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return
	}
	if len(rows) > mostBars {
		sorted := slices.Clone(rows)
		slices.SortStableFunc(sorted, func(x, y compare.Row) int {
			return int(math.Copysign(1, x.Cells[j].Change.P-y.Cells[j].Change.P))
		})
		limit := sorted[mostBars-1].Cells[j].Change.P
		rows = slices.DeleteFunc(rows, func(r compare.Row) bool { return r.Cells[j].Change.P > limit })
		rows = rows[:min(len(rows), mostBars)]
	}
	most := math.Log(1.05)
	for _, row := range rows {
		r := row.Cells[j].Change.Ratio
		most = math.Max(most, math.Min(math.Log(1000), math.Max(math.Abs(math.Log(math.Max(r.Low, 1e-9))), math.Abs(math.Log(r.High)))))
	}
	height := float64(rowsOf*len(rows) + 30)
	a := axis{left, width - right, -most, most}
	begin(b, height, "Changes from "+t.Groups[t.Baseline].Name+" to "+t.Groups[j].Name+" with their 95 % intervals, on a logarithmic scale")
	for _, v := range []float64{-most, -most / 2, 0, most / 2, most} {
		line(b, a.at(v), 4, a.at(v), height-20, "")
		label(b, a.at(v), height-6, "middle", "dim", compare.Percent(math.Exp(v)))
	}
	for i, row := range rows {
		y, c := float64(i*rowsOf)+14, row.Cells[j].Change
		label(b, left-10, y+4, "end", "", text.Short(text.Label(row.Metric.ID()), mostLetters))
		line(b, a.at(math.Log(math.Max(c.Ratio.Low, 1e-9))), y, a.at(math.Log(c.Ratio.High)), y, "i")
		class := "c7"
		switch c.Verdict {
		case compare.Better:
			class = "c2"
		case compare.Worse:
			class = "c1"
		case compare.Changed:
			class = "c0"
		}
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="5" class="%s"/>`+"\n", a.at(math.Log(c.Ratio.Value)), y, class)
	}
	b.WriteString("</svg>\n")
}

// stacked draws the components of both groups as bars. Components below zero are omitted; the table has them.
func stacked(b *strings.Builder, blame compare.Blame, v compare.View) {
	components := v.Parts()
	height := float64(2*rowsOf + 24 + 18*((len(components)+2)/3))
	begin(b, height, "Time by "+v.Name)
	a := axis{left, width - right, 0, math.Max(v.Whole.Before, v.Whole.After)}
	for i, name := range []string{blame.From, blame.To} {
		y, sum := float64(i*(rowsOf+4)+6), 0.0
		label(b, left-10, y+14, "end", "", name)
		for k, s := range components {
			value := []float64{s.Before, s.After}[i]
			if value <= 0 {
				continue
			}
			class := k % (colours - 1)
			if k == len(components)-1 {
				class = colours - 1
			}
			fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="18" class="c%d"><title>%s: %s</title></rect>`, a.at(sum), y, a.at(sum+value)-a.at(sum), class,
				text.HTML(s.Name), seconds(value, v.Whole.Before))
			sum += value
		}
	}
	for k, s := range components {
		x, y := left+float64(k%3)*190, float64(2*rowsOf+20+18*(k/3))
		class := k % (colours - 1)
		if k == len(components)-1 {
			class = colours - 1
		}
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="10" height="10" class="c%d"/>`, x, y, class)
		label(b, x+15, y+9, "start", "", text.Short(s.Name, 26))
	}
	b.WriteString("\n</svg>\n")
}

// sweep draws a metric over the points of a sweep, with a line for each group.
func (r *Report) sweep(b *strings.Builder, m compare.Metric) {
	names := groupNames(r.Tables)
	var all []float64
	for _, t := range r.Tables {
		for _, g := range t.Groups {
			if c, found := t.Cell(m.ID(), g.Name); found {
				all = append(all, c.Values...)
			}
		}
	}
	_, high := limits(all)
	const top, bottom, side = 20, 330, 90
	by, unit := scaled(high, m.Unit)
	y := axis{bottom, top, 0, high}
	x := axis{side + 40, width - right - 40, 0, float64(len(r.Tables) - 1)}
	begin(b, bottom+70, fmt.Sprintf("Head to head: %s in %s at each point", m.ID(), unit))
	label(b, side, 12, "start", "", titleOf(m, unit))
	for _, v := range y.ticks(6) {
		line(b, side, y.at(v), width-right, y.at(v), "")
		label(b, side-8, y.at(v)+4, "end", "dim", analysis.Figure(v*by))
	}
	for i, t := range r.Tables {
		label(b, x.at(float64(i)), bottom+18+14*float64(i%2), "middle", "dim", t.Title)
	}
	for k, name := range names {
		var path strings.Builder
		for i, t := range r.Tables {
			c, found := t.Cell(m.ID(), name)
			if !found || len(c.Values) == 0 {
				continue
			}
			px, py := x.at(float64(i)), y.at(c.Median.Value)
			fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[path.Len() == 0], px, py)
			if c.Median.Bounded() {
				line(b, px, y.at(c.Median.Low), px, y.at(c.Median.High), fmt.Sprintf("s%d", k%colours))
			}
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" class="c%d"/>`, px, py, k%colours)
		}
		fmt.Fprintf(b, `<path d="%s" stroke-width="2" class="s%d"/>`, path.String(), k%colours)
		fmt.Fprintf(b, `<rect x="%d" y="%d" width="10" height="10" class="c%d"/>`, side+k%4*200, bottom+45+k/4*16, k%colours)
		label(b, float64(side+k%4*200+15), float64(bottom+54+k/4*16), "start", "", name)
		b.WriteByte('\n')
	}
	b.WriteString("</svg>\n")
}

// historyChart draws each repetition, the medians, and the changes.
func historyChart(b *strings.Builder, h *compare.History) {
	var all []float64
	for _, p := range h.Points {
		all = append(all, p.Values...)
	}
	low, high := limits(all)
	const top, bottom, side = 20, 330, 90
	by, unit := scaled(high, h.Metric.Unit)
	y, x := axis{bottom, top, low, high}, axis{side + 10, width - 20, 0, float64(len(h.Points) - 1)}
	begin(b, bottom+60, fmt.Sprintf("%s in %s over %s: each repetition, the medians, and the changes", h.Metric.ID(), unit, h.Label))
	for _, v := range y.ticks(6) {
		line(b, side, y.at(v), width-20, y.at(v), "")
		label(b, side-8, y.at(v)+4, "end", "dim", analysis.Figure(v*by))
	}
	for _, c := range h.Changes {
		at := x.at(float64(c.At) - 0.5)
		line(b, at, top, at, bottom, map[compare.Verdict]string{compare.Better: "s2", compare.Worse: "s1"}[c.Verdict])
		label(b, at, top-6, "middle", "", h.Points[c.At].Name+" "+compare.Percent(c.Ratio.Value))
	}
	var path strings.Builder
	every := max(1, (len(h.Points)+11)/12)
	for i, p := range h.Points {
		px := x.at(float64(i))
		if i%every == 0 {
			label(b, px, bottom+18, "middle", "dim", text.Short(p.Name, 12))
		}
		for _, v := range p.Values {
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill-opacity="0.5" class="c0"/>`, px, y.at(v))
		}
		if len(p.Values) > 0 {
			fmt.Fprintf(&path, "%s%.1f %.1f", map[bool]string{true: "M", false: "L"}[path.Len() == 0], px, y.at(p.Median.Value))
		}
	}
	fmt.Fprintf(b, `<path d="%s" stroke-width="2" class="s0"/>`, path.String())
	label(b, side, bottom+45, "start", "dim", titleOf(h.Metric, unit))
	b.WriteString("\n</svg>\n")
}
