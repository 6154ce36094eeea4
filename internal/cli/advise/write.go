// SPDX-License-Identifier: Apache-2.0

package advise

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/lib/jsonapi"
	"github.com/teescope/teescope/internal/lib/text"
)

const (
	// columns is the width of prose in a terminal.
	columns = 100
	// longest bounds foreign text in bytes.
	longest = 2000
)

// JSON writes the report as JSON.
func (r *Report) JSON(w io.Writer) error { return jsonapi.Print(w, r) }

// Text writes the report for a terminal.
func (r *Report) Text(w io.Writer) error {
	t := terminal{bufio.NewWriter(w)}
	t.prose("", r.verdict())
	for _, line := range r.running() {
		t.prose("", line)
	}
	for i, a := range r.Advice {
		t.prose("", "")
		t.prose(fmt.Sprintf("%d. ", i+1), fmt.Sprintf("%s: %s (%s)", strings.ToUpper(string(a.Severity)), a.Title, a.Rule))
		for _, p := range paragraphs(a) {
			t.prose("   "+fmt.Sprintf("%-8s", p.name), p.text)
		}
		if a.Diff != "" {
			t.prose("   Change  ", where(a))
			altered := false
			for line := range strings.Lines(a.Diff) {
				line = strings.TrimRight(line, "\r\n")
				safe := text.Terminal(strings.ReplaceAll(line, "\t", "        "))
				altered = altered || strings.ContainsRune(safe, utf8.RuneError)
				fmt.Fprintln(t, "     "+safe)
			}
			if altered {
				t.prose("     ", "(control characters are shown as U+FFFD; --json has the exact lines)")
			}
		}
	}
	for _, e := range r.WhatIf {
		t.prose("", "")
		t.prose("", asked(e))
		for _, p := range answers(e) {
			t.prose("   "+fmt.Sprintf("%-8s", p.name), p.text)
		}
		if e.Sweep != "" {
			fmt.Fprintln(t, "   "+measure+"\n     "+e.Sweep)
		}
	}
	for _, line := range r.rest() {
		t.prose("", "")
		t.prose("", line)
	}
	return t.Flush()
}

// terminal writes wrapped prose.
type terminal struct{ *bufio.Writer }

// prose writes a paragraph. The first line begins with first, and the others are indented by its width.
func (t terminal) prose(first, s string) {
	in := utf8.RuneCountInString(first)
	for i, line := range render.Wrap(clean(s), columns-in) {
		if i > 0 {
			first = strings.Repeat(" ", in)
		}
		fmt.Fprintln(t, strings.TrimRight(first+line, " "))
	}
}

func clean(s string) string { return text.Cut(text.Terminal(text.Label(s)), longest) }

// measure introduces the command that decides an estimate.
const measure = "To decide, measure both. ./prepare is yours: it sets the key to its argument, signs the manifest and starts the program."

// asked is the heading of an estimate.
func asked(e advise.Estimate) string {
	return fmt.Sprintf("What if %s were %s (now %s)?", e.Key, e.Value, e.Was)
}

// answers returns the parts of an estimate in their order.
func answers(e advise.Estimate) []paragraph {
	var all []paragraph
	for i, s := range e.Seen {
		all = append(all, paragraph{first(i, "Seen"), fmt.Sprintf("%s: %s (%s)", s.What, shownValue(s), s.Source)})
	}
	for i, s := range e.Effects {
		all = append(all, paragraph{first(i, "Effect"), fmt.Sprintf("%s: %s to %s", s.What, render.Value(s.Low, s.Unit), render.Value(s.High, s.Unit))})
	}
	for i, s := range e.Assumptions {
		all = append(all, paragraph{first(i, "If"), s})
	}
	if e.Note != "" {
		all = append(all, paragraph{"Note", e.Note})
	}
	if e.Risk != "" {
		all = append(all, paragraph{"Risk", e.Risk})
	}
	return all
}

// paragraph is a named part of advice.
type paragraph struct{ name, text string }

// paragraphs returns the parts of advice in their order.
func paragraphs(a advise.Advice) []paragraph {
	var all []paragraph
	add := func(name, s string) {
		if s != "" {
			all = append(all, paragraph{name, s})
		}
	}
	for i, s := range a.Seen {
		add(first(i, "Seen"), fmt.Sprintf("%s: %s (%s)", s.What, shownValue(s), s.Source))
	}
	add("Why", a.Why)
	for i, s := range a.Do {
		add(first(i, "Do"), s)
	}
	add("Saves", saving(a.Saving))
	add("Gain", gain(a.Gain))
	for i, s := range estimate.Assumptions(a.Saving, a.Gain) {
		add(first(i, "If"), s)
	}
	add("Risk", a.Risk)
	for i, s := range a.NotWhen {
		add(first(i, "Not if"), s)
	}
	add("No diff", a.NoDiff)
	more := "Gramine, Performance tuning and analysis: " + a.Section
	switch {
	case strings.HasPrefix(a.Section, "Manifest syntax"):
		more = "Gramine, " + a.Section
	case strings.HasPrefix(a.Section, "SCONE"):
		more = a.Section
	}
	if a.Analyze != "" {
		more += "; rule " + a.Analyze + " of teescope analyze"
	}
	add("See", more)
	return all
}

func first(i int, name string) string {
	if i == 0 {
		return name
	}
	return ""
}

func shownValue(s advise.Seen) string {
	if s.Text != "" {
		return s.Text
	}
	if s.Unit == "1" || s.Unit == "" {
		return render.Value(s.Value, "")
	}
	return render.Value(s.Value, s.Unit)
}

func saving(s *estimate.Saving) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s to %s cores", analysis.Figure(s.Low), analysis.Figure(s.High))
}

func gain(g *estimate.Gain) string {
	if g == nil {
		return ""
	}
	return fmt.Sprintf("%.0f to %.0f %% more throughput, which %s limits", 100*g.Low, 100*g.High, g.Limit)
}

// where says what to do with the diff.
func where(a advise.Advice) string {
	switch {
	case a.Insecure:
		return "not for production; --apply leaves it out"
	case a.Choice:
		return "if you decide so; --apply leaves it out"
	}
	return "--apply writes it"
}

// verdict is the first line.
func (r *Report) verdict() string {
	what := ""
	if r.Manifest != "" {
		what = " for " + r.Manifest
	}
	if len(r.Advice) == 0 {
		return fmt.Sprintf("No advice%s: %s judged.", what, count(len(r.Checked)))
	}
	counts := make(map[analysis.Severity]int)
	for _, a := range r.Advice {
		counts[a.Severity]++
	}
	var parts []string
	for _, s := range []analysis.Severity{analysis.High, analysis.Medium, analysis.Low, analysis.Info} {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	return fmt.Sprintf("Advice%s: %s. %s judged.", what, strings.Join(parts, ", "), count(len(r.Checked)))
}

// rest says what could not be judged and what is only known to the analysis.
func (r *Report) rest() []string {
	var all []string
	if len(r.Other) > 0 {
		all = append(all, "Also found by teescope analyze, which has the details: "+strings.Join(r.Other, ", ")+".")
	}
	byNeed := make(map[string][]string)
	for _, m := range r.Missing {
		var needs []string
		for _, in := range m.Needs {
			needs = append(needs, string(in))
		}
		key := strings.Join(needs, ", and ")
		byNeed[key] = append(byNeed[key], m.Rule)
	}
	for _, need := range slices.Sorted(maps.Keys(byNeed)) {
		all = append(all, fmt.Sprintf("Not judged without %s: %s.", need, strings.Join(byNeed[need], ", ")))
	}
	for _, w := range r.Warnings {
		all = append(all, "Warning: "+w+".")
	}
	return all
}

// Markdown writes the report as Markdown.
func (r *Report) Markdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# Advice\n\n%s\n", text.Markdown(clean(r.verdict())))
	for _, line := range r.running() {
		fmt.Fprintf(b, "\n%s\n", text.Markdown(clean(line)))
	}
	for i, a := range r.Advice {
		fmt.Fprintf(b, "\n## %d. %s: %s (`%s`)\n\n", i+1, a.Severity, text.Markdown(a.Title), a.Rule)
		list(b, paragraphs(a))
		if a.Diff != "" {
			fence := "```"
			for strings.Contains(a.Diff, fence) {
				fence += "`"
			}
			fmt.Fprintf(b, "\n%s:\n\n%sdiff\n", strings.ToUpper(where(a)[:1])+where(a)[1:], fence)
			for line := range strings.Lines(a.Diff) {
				fmt.Fprintln(b, text.Label(strings.TrimRight(line, "\r\n")))
			}
			fmt.Fprintln(b, fence)
		}
	}
	for _, e := range r.WhatIf {
		fmt.Fprintf(b, "\n## %s\n\n", text.Markdown(clean(asked(e))))
		list(b, answers(e))
		if e.Sweep != "" {
			fmt.Fprintf(b, "\n%s\n\n```sh\n%s\n```\n", measure, e.Sweep)
		}
	}
	for _, line := range r.rest() {
		fmt.Fprintf(b, "\n%s\n", text.Markdown(clean(line)))
	}
	return b.Flush()
}

// list writes paragraphs as a list, each with its name.
func list(b *bufio.Writer, all []paragraph) {
	name := ""
	for _, p := range all {
		if p.name != "" {
			name = p.name
		}
		fmt.Fprintf(b, "- %s: %s\n", name, text.Markdown(clean(p.text)))
	}
}

// AtLeast returns the number of pieces of advice of a severity or a higher one.
func (r *Report) AtLeast(s analysis.Severity) int {
	return analysis.CountAtLeast(r.Advice, func(a advise.Advice) analysis.Severity { return a.Severity }, s)
}

// count says how many rules did something.
func count(rules int) string {
	return text.Plural(rules, "rule has", "rules have")
}
