// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/text"
)

// columns is the width of prose. Queries are not wrapped, so that they can be copied.
const columns = 80

// terminal writes lines with or without colour.
type terminal struct {
	*bufio.Writer
	colour bool
}

// Styles of a terminal (ECMA-48, SGR).
const (
	bold   = "1"
	dim    = "2"
	red    = "1;31"
	yellow = "33"
	cyan   = "36"
)

func (t terminal) paint(style, s string) string {
	if !t.colour || style == "" || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

func (t terminal) line(parts ...string) { fmt.Fprintln(t, strings.Join(parts, "")) }

// prose writes a paragraph. The first line begins with first, and the others are indented by its width.
func (t terminal) prose(first, s string) { t.styled("", first, s) }

func (t terminal) styled(style, first, s string) {
	in := utf8.RuneCountInString(first)
	for i, line := range Wrap(clean(s), columns-in) {
		if i > 0 {
			first = strings.Repeat(" ", in)
		}
		t.line(first, t.paint(style, line))
	}
}

// Wrap breaks a text between words. A longer word gets a line of its own.
func Wrap(s string, width int) []string {
	var lines []string
	line, size := "", 0
	for word := range strings.FieldsSeq(s) {
		n := utf8.RuneCountInString(word)
		switch {
		case line == "":
			line, size = word, n
		case size+1+n <= width:
			line, size = line+" "+word, size+1+n
		default:
			lines = append(lines, line)
			line, size = word, n
		}
	}
	return append(lines, line)
}

// Text writes the report for a terminal: the verdict, the findings, and what could not be judged.
func (r Report) Text(w io.Writer, colour bool) error {
	t := terminal{bufio.NewWriter(w), colour}
	t.styled(bold, "", r.verdictText())
	t.styled(dim, "", fmt.Sprintf("%s up to %s, from %s", span(r.Window), r.At.Format("2006-01-02 15:04:05 MST"), r.Source))
	if lines := r.causes(); len(lines) > 0 {
		t.line()
		t.line(t.paint(bold, say("fleet")))
		for _, s := range lines {
			t.prose("- ", s)
		}
	}
	for i, f := range r.Findings {
		t.line()
		t.finding(i+1, f)
	}
	if r.LeftOut > 0 {
		t.line()
		t.prose("", fmt.Sprintf("%s of less weight: --all lists them.", text.Plural(r.LeftOut, "more finding", "more findings")))
	}
	t.limits(r)
	t.operations(r)
	t.windows(r)
	t.notJudged(r)
	return t.Flush()
}

func (t terminal) finding(i int, f analysis.Finding) {
	t.styled(bold, fmt.Sprintf("%d. ", i), headline(f))
	mark := t.paint(style(f.Severity), string(f.Severity))
	t.line("   ", mark, t.paint(dim, fmt.Sprintf(", %s, rule %s%s", f.Confidence, f.Rule, since(f))))
	if mark := silenced(f); mark != "" {
		t.prose("   ", "Silenced: "+mark)
	}
	t.prose("   ", f.Cause)
	if gain := worthInFull(f); gain != "" {
		t.prose("   ", "Without it: "+gain)
	}
	if len(f.Evidence) > 0 {
		t.line()
		t.line("   ", t.paint(cyan, say("evidence")))
	}
	for _, e := range f.Evidence {
		t.prose("   - ", e.Name+": "+figure(e))
		t.line("       ", t.paint(dim, clean(e.Query)))
	}
	t.list(say("threads"), threads(f))
	t.list(say("before"), preceding(f.Preceded, f.Earlier))
	t.list(say("advice"), f.Advice)
	t.code(f.Code)
	t.list(say("settings"), f.Settings)
	t.list(say("assumes"), estimate.Assumptions(f.Saving, f.Gain))
	t.list(say("others"), together(f))
	if len(f.Explains) > 0 {
		t.list(say("explains"), []string{strings.Join(f.Explains, ", ")})
	}
	t.list(say("not_when"), f.NotWhen)
	t.list(say("thresholds"), thresholds(f))
	t.list(say("sources"), f.Sources)
	if f.Runbook != "" {
		t.list("Runbook", []string{f.Runbook})
	}
}

func (t terminal) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	t.line()
	t.line("   ", t.paint(cyan, title))
	for _, s := range lines {
		t.prose("   - ", s)
	}
}

// code writes how the code is found. Addresses and commands are not wrapped, so that they can be copied.
func (t terminal) code(c *codelink.Code) {
	for i, l := range codeLines(c) {
		if i == 0 {
			t.line()
			t.line("   ", t.paint(cyan, say("code")))
		}
		t.prose("   - ", l.title)
		if l.text != "" {
			t.line("       ", t.paint(dim, clean(l.text)))
		}
	}
}

func style(s analysis.Severity) string {
	switch s {
	case analysis.High:
		return red
	case analysis.Medium:
		return yellow
	}
	return dim
}

// since returns the age of a finding that has been seen more than once, or says that a single evaluation of a server has found it.
func since(f analysis.Finding) string {
	if f.Unconfirmed {
		return ", " + say("unconfirmed")
	}
	lasted := f.LastSeen.Sub(f.FirstSeen)
	if lasted < time.Second {
		return ""
	}
	return fmt.Sprintf(", since %s (%s)", f.FirstSeen.Format("15:04:05"), span(lasted.Seconds()))
}

// mostProblems bounds the problems that are listed one by one.
const mostProblems = 8

// notJudged writes what could not be judged and why, grouped by reason.
func (t terminal) notJudged(r Report) {
	lines := r.notJudged()
	if len(lines) > 0 {
		t.line()
		t.line(t.paint(bold, say("not_judged")))
	}
	for _, s := range lines {
		t.prose("- ", s)
	}
	if len(r.Warnings) > 0 {
		t.line()
		t.line(t.paint(bold, "Warnings of "+clean(r.Source)))
	}
	for _, s := range r.Warnings {
		t.prose("- ", s)
	}
}

func (r Report) notJudged() []string {
	byReason := map[string][]string{}
	for _, s := range r.Skipped {
		byReason[s.Reason] = append(byReason[s.Reason], s.Rule)
	}
	var lines []string
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		lines = append(lines, strings.Join(byReason[reason], ", ")+": "+reason)
	}
	var grave, absent []string
	for _, p := range r.Problems {
		switch {
		case p.Kind == query.Absent: // the rules' reasons include it
		case p.Kind == query.Gap && p.Workload != "":
			absent = append(absent, p.Workload)
		default:
			grave = append(grave, problem(p))
		}
	}
	if len(absent) > 0 {
		lines = append(lines, say("short", "workloads", listed(absent)))
	}
	if left := len(grave) - mostProblems; left > 1 {
		grave = append(grave[:mostProblems], fmt.Sprintf("%s: --format json lists them", text.Plural(left, "more problem", "more problems")))
	}
	return append(lines, grave...)
}

// mostNames bounds the listed names.
const mostNames = 8

// listed joins names, and adds how many more there are.
func listed(names []string) string {
	if left := len(names) - mostNames; left > 1 {
		names = append(names[:mostNames:mostNames], fmt.Sprintf("%d more", left))
	}
	return strings.Join(names, ", ")
}

func problem(p query.Problem) string {
	about := ""
	switch {
	case p.Workload != "":
		about = subject(analysis.Finding{Workload: p.Workload, Instance: p.Instance}) + ": "
	case p.Query != "":
		about = say("query", "query", p.Query)
	case p.Instance != "":
		about = p.Instance + ": "
	}
	s := about + p.Error
	if len(p.Rules) > 0 {
		s += say("for_rules", "rules", listed(p.Rules))
	}
	return s
}
