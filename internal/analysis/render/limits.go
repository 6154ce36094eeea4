// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/text"
)

// mostLimits bounds the workloads in the table of limits. JSON has all.
const mostLimits = 10

// widest is the widest name in the table, in characters. A longer one has a line of its own.
const widest = 32

// limitName returns a limit as people read it.
func limitName(l engine.Limit) string { return text.Terminal(l.Limit.Name()) }

const limitsTitle = "What limits each workload"

// shownLimits returns the first limits, and how many there are beyond them.
func (r Report) shownLimits() (shown []engine.Limit, more int) {
	n := min(len(r.Limits), mostLimits)
	return r.Limits[:n], len(r.Limits) - n + r.LimitsLeftOut
}

// limitReason returns the reason of a limit, and its first figure with the number of samples.
func limitReason(l engine.Limit) string {
	if len(l.Evidence) == 0 {
		return l.Because
	}
	return l.Because + " (" + l.Evidence[0].Name + " " + figure(l.Evidence[0]) + ")"
}

func limitSubject(l engine.Limit) string {
	return subject(analysis.Finding{Workload: l.Workload, Instance: l.Instance})
}

func (t terminal) limits(r Report) {
	shown, more := r.shownLimits()
	if len(shown) == 0 {
		return
	}
	t.line()
	t.line(t.paint(bold, limitsTitle))
	width := func(of func(engine.Limit) string) int {
		return min(widest, utf8.RuneCountInString(of(slices.MaxFunc(shown, func(a, b engine.Limit) int {
			return utf8.RuneCountInString(of(a)) - utf8.RuneCountInString(of(b))
		}))))
	}
	for _, l := range shown {
		who := limitSubject(l)
		if utf8.RuneCountInString(who) > widest {
			t.line(who)
			who = ""
		}
		t.prose(fmt.Sprintf("%-*s  %-*s  ", width(limitSubject), who, width(limitName), limitName(l)), limitReason(l))
	}
	if more > 0 {
		t.prose("", fmt.Sprintf("%s: --format json lists them.", text.Plural(more, "more workload", "more workloads")))
	}
}

func (r Report) markdownLimits(w io.Writer) {
	shown, more := r.shownLimits()
	if len(shown) == 0 {
		return
	}
	fmt.Fprintf(w, "\n### %s\n\n| workload | limit | because |\n|---|---|---|\n", limitsTitle)
	for _, l := range shown {
		fmt.Fprintf(w, "| %s | %s | %s |\n", markdown(limitSubject(l)), markdown(limitName(l)), markdown(limitReason(l)))
	}
	if more > 0 {
		fmt.Fprintf(w, "\n%s.\n", text.Plural(more, "more workload", "more workloads"))
	}
}
