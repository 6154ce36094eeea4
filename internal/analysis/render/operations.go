// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/lib/text"
)

const operationsTitle = "What one operation costs"

// mostOperations bounds the workloads in the text. JSON has all.
const mostOperations = 20

// shownOperations returns the first workloads with operations, and how many there are beyond them.
func (r Report) shownOperations() (shown []analysis.Operations, more int) {
	n := min(len(r.Operations), mostOperations)
	return r.Operations[:n], len(r.Operations) - n
}

func operationsSubject(o analysis.Operations) string {
	return subject(analysis.Finding{Workload: o.Workload, Instance: o.Instance})
}

// throughput describes how many operations a workload does, or why that is not known.
func throughput(o analysis.Operations) string {
	by := clean(o.Counter)
	if o.Guessed && by != "" {
		by += ", which is guessed"
	}
	if by != "" {
		by = " (" + by + ")"
	}
	if o.PerSecond == nil {
		return "not known: " + o.Because + by
	}
	return "operations" + by + ": " + figure(*o.PerSecond)
}

// costsOf returns the lines about one operation.
func costsOf(o analysis.Operations) []string {
	var lines []string
	for _, e := range o.Latency {
		lines = append(lines, "latency "+e.Name+": "+figure(e))
	}
	for _, e := range o.Costs {
		lines = append(lines, e.Name+": "+figure(e))
	}
	if o.PerSecond != nil && o.Because != "" {
		lines = append(lines, o.Because)
	}
	if len(o.Missing) > 0 && o.PerSecond != nil {
		lines = append(lines, "not measured: "+strings.Join(o.Missing, ", "))
	}
	return lines
}

func (t terminal) operations(r Report) {
	shown, more := r.shownOperations()
	if len(shown) == 0 {
		return
	}
	t.line()
	t.line(t.paint(bold, operationsTitle))
	for _, o := range shown {
		name := operationsSubject(o) + "  "
		if utf8.RuneCountInString(name) > widest {
			t.line(name)
			name = "   "
		}
		t.prose(name, throughput(o))
		for _, line := range costsOf(o) {
			t.prose("   - ", line)
		}
	}
	if more > 0 {
		t.prose("", fmt.Sprintf("%s: --format json lists them.", text.Plural(more, "more workload", "more workloads")))
	}
}

func (r Report) markdownOperations(w io.Writer) {
	shown, more := r.shownOperations()
	if len(shown) == 0 {
		return
	}
	fmt.Fprintf(w, "\n### %s\n\n| workload | | |\n|---|---|---|\n", operationsTitle)
	for _, o := range shown {
		who := markdown(operationsSubject(o))
		fmt.Fprintf(w, "| %s | throughput | %s |\n", who, markdown(throughput(o)))
		for _, line := range costsOf(o) {
			name, value, found := strings.Cut(line, ": ")
			if !found {
				name, value = "note", line
			}
			fmt.Fprintf(w, "| %s | %s | %s |\n", who, markdown(name), markdown(value))
		}
	}
	if more > 0 {
		fmt.Fprintf(w, "\n%s.\n", text.Plural(more, "more workload", "more workloads"))
	}
}

// inOperations states a gain in operations per second, as a sentence.
func inOperations(f analysis.Finding) string {
	if f.Throughput == nil || f.Gain == nil || f.Gain.Operations == nil {
		return ""
	}
	rate := func(v float64) string { return Value(v, "operations/s") }
	more, low, high := "", f.Gain.Operations.Low, f.Gain.Operations.High
	switch {
	case f.Gain.Low < 0.005:
		more = "up to " + rate(high)
	case high > mostSpread*low:
		more = "at least " + rate(low)
	case rate(low) == rate(high):
		more = "about " + rate(high)
	default:
		more = rate(low) + " to " + rate(high)
	}
	return fmt.Sprintf(" It does %s now, so that is %s more.", rate(f.Throughput.Value), more)
}
