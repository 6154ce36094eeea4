// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/compare"
)

// markdown writes a summary for a pull request: failed conditions, outcomes and changes first, and all else folded.
func (r *Report) markdown(b *strings.Builder) {
	for _, f := range r.Failures {
		fmt.Fprintf(b, "**Fails** %s: %s\n\n", text.MarkdownCode(f.Condition), text.Markdown(f.Reason))
	}
	if len(r.Conditions) > 0 && len(r.Failures) == 0 {
		fmt.Fprintf(b, "All conditions that could be judged hold (%d).\n\n", len(r.Conditions))
	}
	for _, t := range r.Tables {
		for _, j := range others(t) {
			heading := t.Groups[t.Baseline].Name + " → " + t.Groups[j].Name
			if t.Title != "" {
				heading += " (" + t.Title + ")"
			}
			fmt.Fprintf(b, "### %s\n\n%s\n\n", text.Markdown(heading), summary(t, j))
			conditionsMarkdown(b, t)
			first := func(row compare.Row) bool {
				return row.Metric.Area == compare.Outcome || row.Cells[j].Change.Verdict.Sure()
			}
			tableMarkdown(b, t, j, first)
			b.WriteString("<details><summary>All metrics</summary>\n\n")
			tableMarkdown(b, t, j, func(row compare.Row) bool { return !first(row) })
			b.WriteString(method(t) + fmt.Sprintf(" Phase: %s. Counters are %s.\n\n</details>\n\n", text.Markdown(t.Phase), per(t)))
		}
		for _, blame := range t.Blames {
			blameMarkdown(b, blame)
		}
		for _, n := range t.Notes {
			fmt.Fprintf(b, "- %s\n", text.Markdown(n))
		}
	}
}

func conditionsMarkdown(b *strings.Builder, t *compare.Table) {
	for _, d := range t.Differences {
		if !d.Identity {
			continue
		}
		what := "The program differs"
		if d.Machine {
			what = "The machine differs, so there is no verdict on what depends on it"
			if t.Forced {
				what = "The machine differs, and verdicts are given nevertheless (--force)"
			}
		}
		fmt.Fprintf(b, "%s: %s: %s\n\n", what, text.Markdown(d.Name), text.Markdown(strings.Join(known(d.Values), " / ")))
	}
}

func tableMarkdown(b *strings.Builder, t *compare.Table, j int, which func(compare.Row) bool) {
	fmt.Fprintf(b, "| metric | unit | %s | %s | change | p | n | finds | |\n|---|---|--:|--:|--:|--:|--:|--:|---|\n",
		text.Markdown(t.Groups[t.Baseline].Name), text.Markdown(t.Groups[j].Name))
	for _, row := range t.Rows {
		if !which(row) {
			continue
		}
		c := *row.Cells[j].Change
		by, unit := scaled(math.Max(row.Cells[t.Baseline].Median.Value, row.Cells[j].Median.Value), row.Metric.Unit)
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", text.Markdown(row.Metric.ID()), text.Markdown(unit), figure(row.Cells[t.Baseline].Median, by),
			figure(row.Cells[j].Median, by), strings.ReplaceAll(changeText(row, t.Baseline, c), "~", `\~`), pText(c), nText(row, t.Baseline, j), detectText(c), text.Markdown(verdictText(c)))
	}
	b.WriteByte('\n')
}

func blameMarkdown(b *strings.Builder, blame compare.Blame) {
	if blame.Reason != "" {
		return
	}
	whole := blame.Whole
	fmt.Fprintf(b, "Time (%s): %s in %s, %s in %s.\n\n", blame.Unit, seconds(whole.Before, whole.Before), text.Markdown(blame.From),
		seconds(whole.After, whole.After), text.Markdown(blame.To))
	for _, v := range blame.Views {
		fmt.Fprintf(b, "| %s | %s | %s | difference | share | source |\n|---|--:|--:|--:|--:|---|\n", v.Name, text.Markdown(blame.From), text.Markdown(blame.To))
		for _, s := range append(v.Parts(), v.Whole) {
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", text.Markdown(s.Name), seconds(s.Before, v.Whole.Before), seconds(s.After, v.Whole.Before),
				strings.ReplaceAll(differenceText(s, v.Whole.Before), "~", `\~`), shareText(s), text.Markdown(s.Source))
		}
		b.WriteByte('\n')
	}
}
