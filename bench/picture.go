// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// The picture has a panel for each load and a bar for each mode. A bar shows the CPU time that was added to each
// operation of the server. Sizes are in pixels.
const (
	pictureWidth  = 920
	barsFrom      = 150 // left end of the bars, to the right of the modes' names
	barsTo        = 700 // right end of the bars, to the left of the numbers
	barHeight     = 16
	panelHead     = 28
	pictureHead   = 56
	addedMost     = 60.0 // per cent at which the axis ends; longer bars are drawn open
	addedLeast    = -10.0
	colorTeescope = "#1f6f8b"
	colorOther    = "#9aa5ab"
)

// picture draws the report as SVG. It includes machine, time, n and intervals, because it is shown alone.
func (r Report) picture() string {
	var b strings.Builder
	panels := r.panels()
	height := pictureHead + 24
	for _, p := range panels {
		height += panelHead + len(p)*(barHeight+4)
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", pictureWidth, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", pictureWidth, height)
	text(&b, 10, 20, "bold", "CPU time of the server added to each operation by watching, in % of "+r.Base+" (dark: teescope)")
	m := r.Machine
	text(&b, 10, 38, "normal", fmt.Sprintf("%s, Linux %s, %s, %d cores; medians of n = %d rounds, lines: 95 %% intervals", m.Date, m.Kernel, m.CPU, m.Cores, r.Rounds))
	axis(&b, pictureHead, height-24)
	y := pictureHead
	for _, p := range panels {
		text(&b, 10, y+16, "bold", loadNamed(p[0].Load).is)
		y += panelHead
		for _, row := range p {
			bar(&b, y, row)
			y += barHeight + 4
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// panels groups the rows by load, without the base.
func (r Report) panels() [][]Row {
	var panels [][]Row
	for _, row := range r.Rows {
		if row.Mode == r.Base {
			continue
		}
		if n := len(panels); n == 0 || panels[n-1][0].Load != row.Load {
			panels = append(panels, nil)
		}
		panels[len(panels)-1] = append(panels[len(panels)-1], row)
	}
	return panels
}

func text(b *strings.Builder, x, y int, weight, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="%s">%s</text>`+"\n", x, y, weight, html.EscapeString(s))
}

// added converts a ratio to additional per cent.
func added(ratio float64) float64 { return (ratio - 1) * 100 }

// at returns the position of a percentage on the axis. Values beyond the axis are at its ends.
func at(percent float64) float64 {
	percent = math.Max(addedLeast, math.Min(addedMost, percent))
	return barsFrom + (percent-addedLeast)/(addedMost-addedLeast)*(barsTo-barsFrom)
}

func bar(b *strings.Builder, y int, row Row) {
	median, low, high := added(row.CPURatio.Median), added(row.CPURatio.Low), added(row.CPURatio.High)
	color := colorOther
	if strings.HasPrefix(modeNamed(row.Mode).is, "`teescope") {
		color = colorTeescope
	}
	text(b, 10, y+12, "normal", row.Mode)
	from, to := math.Min(at(0), at(median)), math.Max(at(0), at(median))
	fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", from, y, to-from, barHeight, color)
	middle := y + barHeight/2
	fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#222222" stroke-width="1.5"/>`+"\n", at(low), middle, at(high), middle)
	if median > addedMost {
		fmt.Fprintf(b, `<path d="M%d %d l6 8 l-6 8" fill="none" stroke="#ffffff" stroke-width="3"/>`+"\n", barsTo-12, y)
	}
	text(b, barsTo+10, y+12, "normal", fmt.Sprintf("%s (%s to %s)", signed(median), signed(low), signed(high)))
}

// signed gives three digits at least.
func signed(percent float64) string {
	if math.Abs(percent) < 100 {
		return fmt.Sprintf("%+.1f", percent)
	}
	return fmt.Sprintf("%+.0f", percent)
}

// axis draws zero and a line for each ten per cent.
func axis(b *strings.Builder, top, bottom int) {
	for percent := addedLeast; percent <= addedMost; percent += 10 {
		color := "#dddddd"
		if percent == 0 {
			color = "#222222"
		}
		fmt.Fprintf(b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="%s" stroke-width="0.5"/>`+"\n", at(percent), top, at(percent), bottom, color)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="middle">%+.0f %%</text>`+"\n", at(percent), bottom+16, percent)
	}
}
