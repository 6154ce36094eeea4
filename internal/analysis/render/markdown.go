// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/lib/text"
)

// markdown escapes foreign text for Markdown, and code formats it as code.
func markdown(s string) string { return text.Markdown(clean(s)) }

func code(s string) string { return text.MarkdownCode(clean(s)) }

// Markdown writes the report for an issue or a wiki.
func (r Report) Markdown(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "## %s\n\n", markdown(r.verdictText()))
	fmt.Fprintf(w, "%s up to %s, from %s.\n", span(r.Window), r.At.Format("2006-01-02 15:04:05 MST"), code(r.Source))
	markdownList(w, "### "+say("fleet"), r.causes())
	for i, f := range r.Findings {
		markdownFinding(w, i+1, f)
	}
	if r.LeftOut > 0 {
		fmt.Fprintf(w, "\n%s of less weight.\n", text.Plural(r.LeftOut, "more finding", "more findings"))
	}
	r.markdownLimits(w)
	r.markdownOperations(w)
	r.markdownWindows(w)
	markdownList(w, "### "+say("not_judged"), r.notJudged())
	markdownList(w, "### Warnings of the source", r.Warnings)
	return w.Flush()
}

func markdownFinding(w io.Writer, i int, f analysis.Finding) {
	fmt.Fprintf(w, "\n### %d. %s\n\n", i, markdown(headline(f)))
	fmt.Fprintf(w, "**%s**, %s, rule %s%s.\n\n%s\n", f.Severity, f.Confidence, code(f.Rule), since(f), markdown(f.Cause))
	if mark := silenced(f); mark != "" {
		fmt.Fprintf(w, "\nSilenced: %s\n", markdown(mark))
	}
	if gain := worthInFull(f); gain != "" {
		fmt.Fprintf(w, "\nWithout it: **%s**\n", markdown(gain))
	}
	if len(f.Evidence) > 0 {
		fmt.Fprint(w, "\n| evidence | value | query |\n|---|---|---|\n")
	}
	for _, e := range f.Evidence {
		// A bar ends a cell even within code.
		fmt.Fprintf(w, "| %s | %s | %s |\n", markdown(e.Name), markdown(figure(e)), strings.ReplaceAll(code(e.Query), "|", `\|`))
	}
	markdownList(w, "**"+say("threads")+"**", threads(f))
	markdownList(w, "**"+say("before")+"**", preceding(f.Preceded, f.Earlier))
	markdownList(w, "**"+say("advice")+"**", f.Advice)
	for i, l := range codeLines(f.Code) {
		if i == 0 {
			fmt.Fprintf(w, "\n**%s**\n\n", say("code"))
		}
		if l.text == "" {
			fmt.Fprintf(w, "- %s\n", markdown(l.title))
			continue
		}
		fmt.Fprintf(w, "- %s: %s\n", markdown(strings.TrimSuffix(l.title, ":")), code(l.text))
	}
	markdownList(w, "**"+say("settings")+"**", f.Settings)
	markdownList(w, "**"+say("assumes")+"**", estimate.Assumptions(f.Saving, f.Gain))
	markdownList(w, "**"+say("others")+"**", together(f))
	if len(f.Explains) > 0 {
		markdownList(w, "**"+say("explains")+"**", []string{strings.Join(f.Explains, ", ")})
	}
	markdownList(w, "**"+say("not_when")+"**", f.NotWhen)
	markdownList(w, "**"+say("thresholds")+"**", thresholds(f))
	markdownList(w, "**"+say("sources")+"**", f.Sources)
	if f.Runbook != "" {
		markdownList(w, "**Runbook**", []string{f.Runbook})
	}
}

func (r Report) markdownWindows(w io.Writer) {
	if len(r.Windows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n### Windows of %s\n\n| workload | metric | min | q1 | median | q3 | max | outliers | n |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n", span(r.Window))
	for _, b := range r.Windows {
		fmt.Fprintf(w, "| %s | %s |", markdown(subject(analysis.Finding{Workload: b.Workload, Instance: b.Instance})), code(b.Metric))
		for _, v := range []float64{b.Min, b.Q1, b.Median, b.Q3, b.Max} {
			fmt.Fprintf(w, " %s |", Value(v, b.Unit))
		}
		fmt.Fprintf(w, " %d | %d |\n", b.Outliers, b.N)
	}
}

func markdownList(w io.Writer, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n\n", title)
	for _, s := range lines {
		fmt.Fprintf(w, "- %s\n", markdown(s))
	}
}
