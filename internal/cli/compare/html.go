// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/compare"
)

// style follows the theme of the reader. The colours of groups are those of Okabe and Ito, which people with any colour
// vision can distinguish.
const style = `:root{color-scheme:light dark;--text:#1b1b1f;--dim:#5c5c66;--line:#c9c9d1;--back:#fff;--bad:#b3261e;--good:#1a6b34}
@media(prefers-color-scheme:dark){:root{--text:#e6e6ea;--dim:#a0a0aa;--line:#44444c;--back:#16161a;--bad:#ff8a80;--good:#7fd699}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--text);background:var(--back);margin:2rem auto;max-width:75rem;padding:0 1rem}
table{border-collapse:collapse;margin:.5rem 0 1.5rem;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}
th,td{padding:.15rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child,td.l{text-align:left}tr.area th{text-align:left;padding-top:.8rem}
.worse,.fail{color:var(--bad)}.better{color:var(--good)}.dim{color:var(--dim)}
svg{display:block;max-width:100%;height:auto;margin:.5rem 0 1.5rem}svg text{fill:var(--text);font:12px system-ui,sans-serif}
svg .dim{fill:var(--dim)}svg line,svg path{stroke:var(--line);fill:none}svg .i{stroke:var(--text);stroke-width:2}
.c0{fill:#0072b2}.c1{fill:#d55e00}.c2{fill:#009e73}.c3{fill:#cc79a7}.c4{fill:#e69f00}.c5{fill:#56b4e9}.c6{fill:#8b7d00}.c7{fill:#777}
svg .s0{stroke:#0072b2}svg .s1{stroke:#d55e00}svg .s2{stroke:#009e73}svg .s3{stroke:#cc79a7}svg .s4{stroke:#e69f00}svg .s5{stroke:#56b4e9}svg .s6{stroke:#8b7d00}svg .s7{stroke:#777}
`

// colours is the number of colours of groups.
const colours = 8

// page writes a self-contained page. Its policy allows only its own style.
func page(b *strings.Builder, title string, body func()) {
	sum := sha256.Sum256([]byte(style))
	fmt.Fprintf(b, `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width"><title>%s</title>
<style>%s</style></head><body><h1>%s</h1>
`, base64.StdEncoding.EncodeToString(sum[:]), text.HTML(title), style, text.HTML(title))
	body()
	b.WriteString("</body></html>\n")
}

func (r *Report) html(b *strings.Builder) {
	var names []string
	for _, g := range r.Tables[0].Groups {
		names = append(names, g.Name)
	}
	page(b, "Comparison of "+strings.Join(names, ", "), func() {
		for _, f := range r.Failures {
			fmt.Fprintf(b, "<p class=fail>Fails <code>%s</code>: %s</p>\n", text.HTML(f.Condition), text.HTML(f.Reason))
		}
		if len(r.Tables) > 1 {
			for _, m := range overPoints(r.Tables) {
				r.sweep(b, m)
			}
		}
		for _, t := range r.Tables {
			tableHTML(b, t)
		}
	})
}

func tableHTML(b *strings.Builder, t *compare.Table) {
	if t.Title != "" {
		fmt.Fprintf(b, "<h2>%s</h2>\n", text.HTML(t.Title))
	}
	b.WriteString("<table><tr><th>group<th>repetitions<th>workloads<th>files</tr>")
	for _, g := range t.Groups {
		fmt.Fprintf(b, "<tr><td>%s<td>%d<td class=l>%s<td class=l>%s</tr>", text.HTML(g.Name), g.Repetitions, text.HTML(workloads(g)), text.HTML(files(g.Files)))
	}
	fmt.Fprintf(b, "</table><p>Phase: %s. Counters are %s.", text.HTML(t.Phase), per(t))
	if t.Per > 0 {
		fmt.Fprintf(b, " Operations: %s.", text.HTML(t.Groups[t.Baseline].Operations))
	}
	fmt.Fprintf(b, " %s</p>\n", text.HTML(method(t)))
	conditionsHTML(b, t)
	for _, row := range t.Rows {
		if row.Metric.Area == compare.Outcome {
			strip(b, t, row)
		}
	}
	for _, j := range others(t) {
		fmt.Fprintf(b, "<h3>%s</h3><p>%s</p>\n", text.HTML(t.Groups[t.Baseline].Name+" → "+t.Groups[j].Name), summary(t, j))
		forest(b, t, j)
		pairHTML(b, t, j)
	}
	for _, blame := range t.Blames {
		blameHTML(b, blame)
	}
	for _, n := range t.Notes {
		fmt.Fprintf(b, "<p class=dim>Note: %s</p>\n", text.HTML(n))
	}
}

func conditionsHTML(b *strings.Builder, t *compare.Table) {
	for _, d := range t.Differences {
		what, class := "The program differs", "dim"
		switch {
		case !d.Identity:
			continue
		case d.Machine && t.Forced:
			what, class = "The machine differs, and verdicts are given nevertheless (--force)", "fail"
		case d.Machine:
			what, class = "The machine differs, so there is no verdict on what depends on it", "fail"
		}
		fmt.Fprintf(b, "<p class=%s>%s: %s: %s</p>\n", class, what, text.HTML(d.Name), text.HTML(strings.Join(known(d.Values), " / ")))
	}
}

func pairHTML(b *strings.Builder, t *compare.Table, j int) {
	fmt.Fprintf(b, "<table><tr><th>metric<th>unit<th>%s<th>%s<th>change<th>p<th>n<th>finds<th></tr>\n", text.HTML(t.Groups[t.Baseline].Name), text.HTML(t.Groups[j].Name))
	area := compare.Area("")
	for _, row := range t.Rows {
		c := *row.Cells[j].Change
		if row.Metric.Area != area {
			area = row.Metric.Area
			fmt.Fprintf(b, "<tr class=area><th colspan=9>%s</tr>\n", area)
		}
		by, unit := scaled(math.Max(row.Cells[t.Baseline].Median.Value, row.Cells[j].Median.Value), row.Metric.Unit)
		fmt.Fprintf(b, "<tr><td>%s<td>%s<td>%s<td>%s<td class=%s>%s<td>%s<td>%s<td>%s<td class=l>%s</tr>\n", text.HTML(row.Metric.ID()), text.HTML(unit),
			figure(row.Cells[t.Baseline].Median, by), figure(row.Cells[j].Median, by), verdictClass(c.Verdict), changeText(row, t.Baseline, c), pText(c), nText(row, t.Baseline, j),
			detectText(c), text.HTML(verdictText(c)))
	}
	b.WriteString("</table>\n")
}

// verdictClass is the class of a verdict in the style.
func verdictClass(v compare.Verdict) string {
	switch v {
	case compare.Better, compare.Worse:
		return string(v)
	case compare.Changed:
		return "changed"
	}
	return "dim"
}

func blameHTML(b *strings.Builder, blame compare.Blame) {
	if blame.Reason != "" {
		fmt.Fprintf(b, "<p class=dim>What accounts for the time is unknown: %s.</p>\n", text.HTML(blame.Reason))
		return
	}
	whole := blame.Whole
	fmt.Fprintf(b, "<h3>What accounts for the time</h3><p>%s in %s, %s in %s (%s).</p>\n", seconds(whole.Before, whole.Before), text.HTML(blame.From),
		seconds(whole.After, whole.After), text.HTML(blame.To), blame.Unit)
	for _, v := range blame.Views {
		stacked(b, blame, v)
		fmt.Fprintf(b, "<table><tr><th>%s<th>%s<th>%s<th>difference<th>share<th>p<th>source</tr>\n", text.HTML(v.Name), text.HTML(blame.From), text.HTML(blame.To))
		for _, s := range append(v.Parts(), v.Whole) {
			fmt.Fprintf(b, "<tr><td>%s<td>%s<td>%s<td>%s<td>%s<td>%s<td class=l>%s</tr>\n", text.HTML(s.Name), seconds(s.Before, v.Whole.Before), seconds(s.After, v.Whole.Before),
				differenceText(s, v.Whole.Before), shareText(s), pComponent(s), text.HTML(s.Source))
		}
		b.WriteString("</table>\n")
	}
	for _, n := range blame.Notes {
		fmt.Fprintf(b, "<p class=dim>Note: %s</p>\n", text.HTML(n))
	}
}

func historyHTML(b *strings.Builder, h *compare.History) {
	page(b, h.Metric.ID()+" over "+h.Label, func() {
		for _, s := range changeSentences(h) {
			fmt.Fprintf(b, "<p>%s</p>\n", text.HTML(s))
		}
		historyChart(b, h)
		_, high := span(h)
		by, unit := scaled(high, h.Metric.Unit)
		fmt.Fprintf(b, "<table><tr><th>%s<th>%s<th>n<th>started<th>files</tr>\n", text.HTML(h.Label), text.HTML(unit))
		for _, p := range h.Points {
			fmt.Fprintf(b, "<tr><td>%s<td>%s<td>%d<td>%s<td class=l>%s</tr>\n", text.HTML(p.Name), figure(p.Median, by), len(p.Values), p.Started.UTC().Format("2006-01-02 15:04:05"), text.HTML(files(p.Files)))
		}
		b.WriteString("</table>\n")
		for _, n := range h.Notes {
			fmt.Fprintf(b, "<p class=dim>Note: %s</p>\n", text.HTML(n))
		}
	})
}
