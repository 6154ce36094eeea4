// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/history"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/text"
)

// Past is the history of findings from a source.
type Past struct {
	history.Answer
	Source string
}

// JSON writes the answer of the server.
func (p Past) JSON(w io.Writer) error {
	return jsonapi.Print(w, p.Answer)
}

// day formats a time with its date.
func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

// Text writes the history for a terminal: a table of all causes, then each finding.
func (p Past) Text(w io.Writer, colour bool) error {
	t := terminal{bufio.NewWriter(w), colour}
	t.styled(bold, "", p.title())
	t.styled(dim, "", p.scope())
	if len(p.Summaries) > 0 {
		t.line()
		table := tabwriter.NewWriter(t, 0, 0, 2, ' ', 0)
		for _, row := range p.table() {
			fmt.Fprintln(table, strings.Join(row, "\t"))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, e := range p.Findings {
		t.line()
		t.styled(bold, "", headline(past(e)))
		mark := t.paint(style(e.Severity), clean(string(e.Severity)))
		t.line("   ", mark, t.paint(dim, fmt.Sprintf(", %s, rule %s", clean(string(e.Confidence)), clean(e.Rule))))
		for _, line := range entryLines(e) {
			t.prose("   ", line)
		}
	}
	for i, note := range p.notes() {
		if i == 0 {
			t.line()
		}
		t.prose("- ", note)
	}
	return t.Flush()
}

// Markdown writes the history for an issue or a wiki.
func (p Past) Markdown(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "## %s\n\n%s\n", markdown(p.title()), markdown(p.scope()))
	for i, row := range p.table() {
		if i == 0 {
			fmt.Fprint(w, "\n")
		}
		for _, cell := range row {
			fmt.Fprintf(w, "| %s ", markdown(cell))
		}
		fmt.Fprint(w, "|\n")
		if i == 0 {
			fmt.Fprint(w, strings.Repeat("|---", len(row))+"|\n")
		}
	}
	for _, e := range p.Findings {
		fmt.Fprintf(w, "\n### %s\n\n**%s**, %s, rule %s.\n", markdown(headline(past(e))), markdown(string(e.Severity)), markdown(string(e.Confidence)), code(e.Rule))
		fmt.Fprint(w, "\n")
		for _, line := range entryLines(e) {
			fmt.Fprintf(w, "- %s\n", markdown(line))
		}
	}
	markdownList(w, "### Notes", p.notes())
	return w.Flush()
}

func (p Past) title() string {
	all := 0
	for _, s := range p.Summaries {
		all += s.Times
	}
	switch {
	case len(p.Summaries) == 0:
		return "No findings."
	case p.SummariesLeftOut > 0:
		all = len(p.Findings) + p.LeftOut
	}
	return fmt.Sprintf("%s of %s.", text.Plural(all, "finding", "findings"), text.Plural(len(p.Summaries)+p.SummariesLeftOut, "cause at a workload", "causes at workloads"))
}

func (p Past) scope() string {
	return fmt.Sprintf("%s to %s UTC, from %s", day(p.From), day(p.To), clean(p.Source))
}

// table returns the summaries with a header. It has no row if there are none.
func (p Past) table() [][]string {
	if len(p.Summaries) == 0 {
		return nil
	}
	rows := [][]string{{"rule", "workload", "severity", "times", "open for", "longest", "last began", "last ended"}}
	for _, s := range p.Summaries {
		ended := "open"
		if !s.Open {
			ended = day(s.LastEnded)
		}
		total := span(s.Total)
		if s.UnknownEnds > 0 {
			total = "at least " + total
		}
		rows = append(rows, []string{
			clean(s.Rule), subject(analysis.Finding{Workload: s.Workload, Instance: s.Instance}), clean(string(s.Severity)), fmt.Sprint(s.Times),
			total, span(s.Longest), day(s.LastBegan), ended,
		})
	}
	return rows
}

func (p Past) notes() []string {
	var notes []string
	if p.SummariesLeftOut > 0 {
		notes = append(notes, fmt.Sprintf("%s left out of the table: use --rule, --workload or a larger --limit", text.Plural(p.SummariesLeftOut, "cause is", "causes are")))
	}
	if p.LeftOut > 0 {
		notes = append(notes, fmt.Sprintf("%s not listed one by one: use a larger --limit", text.Plural(p.LeftOut, "older finding is", "older findings are")))
	}
	if !p.CompleteSince.IsZero() && p.CompleteSince.After(p.From) {
		notes = append(notes, fmt.Sprintf("the history is full: findings that ended before %s UTC may be missing", day(p.CompleteSince)))
	}
	for _, s := range p.Warnings {
		notes = append(notes, clean(s))
	}
	return notes
}

// past returns what an entry has in common with a finding.
func past(e history.Entry) analysis.Finding {
	f := analysis.Finding{Rule: clean(e.Rule), Title: clean(e.Title), Workload: e.Workload, Instance: e.Instance}
	if e.Saving != nil {
		f.Saving = &estimate.Saving{Low: e.Saving.Low, High: e.Saving.High}
	}
	if e.Gain != nil {
		f.Gain = &estimate.Gain{Low: e.Gain.Low, High: e.Gain.High}
	}
	return f
}

// entryLines describes a finding of the past, one sentence a line.
func entryLines(e history.Entry) []string {
	lasted := fmt.Sprintf("%s to %s UTC, open for %s", day(e.Began), day(e.Ended), span(e.Ended.Sub(e.Began).Seconds()))
	switch {
	case e.Open():
		lasted = fmt.Sprintf("open since %s UTC", day(e.Began))
	case e.EndUnknown:
		lasted = fmt.Sprintf("began at %s UTC; when it ended is not known", day(e.Began))
	}
	if e.Silence != "" {
		lasted += "; silenced: " + clean(string(e.Silence))
	}
	lines := []string{lasted}
	for i, f := range e.Evidence {
		head := ""
		if i == 0 {
			head = "at its beginning: "
		}
		lines = append(lines, head+clean(f.Name)+" "+figure(analysis.Evidence{Value: f.Value, Unit: f.Unit, Low: f.Low, High: f.High, N: f.N}))
	}
	for _, line := range preceding(e.Preceded, e.Earlier) {
		lines = append(lines, "before it began: "+line)
	}
	if worth := Worth(past(e)); worth != "" {
		lines = append(lines, "predicted without it: "+worth)
	}
	return append(lines, outcome(e.Outcome)...)
}

// outcome describes what was measured after an event that preceded the end of a finding.
func outcome(o *history.Outcome) (lines []string) {
	if o == nil {
		return nil
	}
	for _, e := range o.After {
		lines = append(lines, fmt.Sprintf("ended %s after %s (at %s UTC; by chance in at most %s of findings)",
			span(e.Seconds), clean(e.What), e.At.UTC().Format("15:04:05"), text.Percent(e.Chance)))
	}
	if o.Gone {
		return append(lines, "the workload has no samples since, so nothing can be compared")
	}
	for _, c := range o.Changes() {
		line := fmt.Sprintf("measured since: %s %s, before %s; change %s", clean(c.Name), Value(c.After, c.Unit), Value(c.Before, c.Unit), Value(c.After-c.Before, c.Unit))
		if c.Low != nil && c.High != nil {
			line += say("interval", "low", Value(*c.Low, c.Unit), "high", Value(*c.High, c.Unit))
		}
		lines = append(lines, line+fmt.Sprintf(", n=%d and %d", c.NBefore, c.NAfter))
	}
	return lines
}

// PastFormats returns the formats in which a history can be written.
func PastFormats() []string { return []string{"text", "json", "markdown"} }

// Write writes the history in one of the [PastFormats].
func (p Past) Write(w io.Writer, format string, colour bool) error {
	switch format {
	case "json":
		return p.JSON(w)
	case "markdown":
		return p.Markdown(w)
	}
	return p.Text(w, colour)
}
