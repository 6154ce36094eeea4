// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/lib/text"
)

// longestText bounds foreign text in bytes, because any user can name a program.
const longestText = 2000

// clean escapes foreign text for a terminal.
func clean(s string) string { return text.Cut(text.Terminal(s), longestText) }

func scaled(v, base float64, units []string) string {
	i := 0
	for math.Abs(v) >= base-0.5 && i < len(units)-1 {
		v /= base
		i++
	}
	return text.Digits(v) + units[i]
}

// Value formats a figure with a unit as in metric names: 37000 "1/s" is "37k/s".
func Value(v float64, unit string) string {
	si := []string{"", "k", "M", "G", "T", "P"}
	iec := []string{" B", " KiB", " MiB", " GiB", " TiB", " PiB"}
	switch {
	case math.IsInf(v, 0) || math.IsNaN(v):
		return "not a number"
	case unit == "bytes":
		return scaled(v, 1024, iec)
	case unit == "bytes/s":
		return scaled(v, 1024, iec) + "/s"
	case unit == "seconds":
		return text.Seconds(v)
	case unit == "ratio":
		return text.Percent(v)
	case unit == "" || unit == "1":
		return scaled(v, 1000, si)
	case strings.HasPrefix(unit, "1/"):
		return scaled(v, 1000, si) + strings.TrimPrefix(unit, "1")
	}
	return scaled(v, 1000, si) + " " + clean(unit)
}

// times formats a factor with no more digits than an estimate has.
func times(v float64) string {
	if v < 9.95 {
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(v, 'f', 0, 64)
}

// mostSpread is the largest ratio of the ends of an estimate that is printed as a range. A wider range says little, so
// only its lower end is printed.
const mostSpread = 3

// gainText formats the interval of the additional throughput without the cause.
func gainText(g *estimate.Gain) string {
	switch {
	case g == nil:
		return ""
	case g.High < 0.005:
		return say("gain_small")
	case g.High >= 1 && g.Low < 0.005:
		return say("gain_up_to_times", "high", times(1+g.High))
	case g.Low < 0.005:
		return say("gain_up_to", "high", text.Percent(g.High))
	case g.High > mostSpread*g.Low:
		return say("gain_at_least", "low", text.Percent(g.Low))
	case g.High >= 1:
		return say("gain_times", "low", times(1+g.Low), "high", times(1+g.High))
	}
	low, high := text.Percent(g.Low), text.Percent(g.High)
	if low == high {
		return say("gain_about", "high", high)
	}
	return say("gain_between", "low", strings.TrimSuffix(low, " %"), "high", high)
}

// leastCores is the least CPU time, in cores, that is printed. A lower end below it is not a promise.
const leastCores = 0.001

// savingText formats the interval of the CPU time that is saved without the cause.
func savingText(s *estimate.Saving) string {
	if s == nil {
		return ""
	}
	low, high := text.Digits(s.Low), text.Digits(s.High)
	switch {
	case s.High < leastCores:
		return say("saving_small")
	case s.Low < leastCores:
		return say("saving_up_to", "high", high)
	case s.High > mostSpread*s.Low:
		return say("saving_at_least", "low", low)
	case low == high:
		return say("saving_about", "high", high)
	}
	return say("saving_between", "low", low, "high", high)
}

// Worth formats what removing the cause of a finding is worth: cores, and throughput where something limits it.
func Worth(f analysis.Finding) string {
	var parts []string
	if f.Saving != nil {
		parts = append(parts, savingText(f.Saving))
	}
	if f.Gain != nil {
		parts = append(parts, say("throughput", "gain", gainText(f.Gain)))
	}
	return strings.Join(parts, "; ")
}

// worthInFull is [Worth] with what limits the throughput, or that nothing shows a limit, as sentences.
func worthInFull(f analysis.Finding) string {
	worth := Worth(f)
	switch {
	case worth == "":
		return ""
	case f.Gain != nil && f.Gain.Limit != "":
		return worth + ". " + say("limited", "limit", clean(f.Gain.Limit)) + inOperations(f)
	case f.Gain == nil:
		return worth + ". " + say("no_limit")
	}
	return worth + "."
}

// figure formats a piece of evidence: its value, its interval if there is one, and the number of samples.
func figure(e analysis.Evidence) string {
	s := Value(e.Value, e.Unit)
	if e.Low != nil && e.High != nil {
		s += say("interval", "low", Value(*e.Low, e.Unit), "high", Value(*e.High, e.Unit))
	}
	if e.N > 0 {
		s += ", n=" + strconv.Itoa(e.N)
	}
	if p := e.PerOperation; p != nil {
		s += "; " + Value(p.Value, p.Unit)
		if p.Low != nil && p.High != nil {
			s += say("interval", "low", Value(*p.Low, p.Unit), "high", Value(*p.High, p.Unit))
		}
		s += " for each operation"
	}
	return s
}

// subject names the workload or machine of a finding.
func subject(f analysis.Finding) string {
	switch name, at := clean(f.Workload), clean(f.Instance); {
	case name == "" && at == "":
		return say("machine")
	case name == "":
		return say("machine_named", "instance", at)
	case at == "":
		return name
	default:
		return name + " on " + at
	}
}

// headline names the workload and the cause of a finding.
func headline(f analysis.Finding) string {
	if f.Title == "" {
		return subject(f) + ": " + f.Rule
	}
	return subject(f) + ": " + f.Title
}

// thresholds describes the thresholds that the configuration has replaced.
func thresholds(f analysis.Finding) []string {
	var lines []string
	for _, t := range f.Thresholds {
		lines = append(lines, t.Name+": "+say("instead", "value", Value(t.Value, t.Unit), "usual", Value(t.Default, t.Unit)))
	}
	return lines
}

// preceding describes events shortly before a finding began, and its first figure on earlier days.
func preceding(events []analysis.Preceding, earlier []analysis.Earlier) []string {
	var lines []string
	for _, e := range events {
		lines = append(lines, say("preceded", "ago", span(e.Seconds), "what", clean(e.What), "time", e.At.UTC().Format("15:04:05")+" UTC", "share", text.Percent(e.Chance)))
	}
	for _, e := range earlier {
		lines = append(lines, say("earlier", "ago", span(e.Ago), "name", clean(e.Name), "value", Value(e.Value, e.Unit)))
	}
	return lines
}

// Claimed returns a name, with a note if the user was not authenticated. Without a name it is empty.
func Claimed(by string, verified bool) string {
	if by == "" || verified {
		return by
	}
	return by + " (not verified)"
}

// silenced describes the silence that covers a finding. The comment is the last part, so that nothing in it looks like the name of
// who made the silence.
func silenced(f analysis.Finding) string {
	if f.Silence == nil {
		return ""
	}
	s := string(f.Silence.Kind)
	if f.Silence.CreatedBy != "" {
		s += ", by " + clean(Claimed(f.Silence.CreatedBy, f.Silence.CreatedByVerified))
	}
	if !f.Silence.EndsAt.IsZero() {
		s += ", until " + f.Silence.EndsAt.UTC().Format(time.RFC3339)
	}
	return s + ": " + clean(f.Silence.Comment)
}

// together describes how the estimates of a finding combine with the workload's other findings.
func together(f analysis.Finding) []string {
	var lines, left, same []string
	for _, rule := range f.Overlaps {
		if slices.Contains(f.Adds, rule) {
			left = append(left, rule)
		} else {
			same = append(same, rule)
		}
	}
	for _, part := range []struct {
		phrase string
		rules  []string
	}{{"adds", f.Adds}, {"left_part", left}, {"same_time", same}} {
		if len(part.rules) > 0 {
			lines = append(lines, say(part.phrase, "rules", strings.Join(part.rules, ", ")))
		}
	}
	return lines
}

// span formats a duration in whole units.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0f min", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0f h", d.Hours())
	}
	return fmt.Sprintf("%.0f d", d.Hours()/24)
}

// verdictText summarizes the report in one or two sentences, and says how many findings are muted.
func (r Report) verdictText() string {
	if r.Muted == 0 {
		return r.verdict()
	}
	return r.verdict() + " " + say("verdict_muted", "muted", text.Plural(r.Muted, "finding", "findings"))
}

func (r Report) verdict() string {
	looked := say("looked", "workloads", text.Plural(r.Workloads, "workload", "workloads"), "window", span(r.Window))
	all := len(r.Findings) + r.LeftOut
	switch {
	case r.Workloads == 0 && all == 0:
		return say("verdict_unknown", "window", span(r.Window))
	case all == 0 && len(r.Checked) == 0:
		return say("verdict_no_rule", "looked", looked, "because", r.usualReason())
	case all == 0:
		return say("verdict_nothing", "looked", looked, "rules", text.Plural(len(r.Checked), "rule", "rules"))
	}
	first := r.Findings[0]
	s := say("verdict_found", "findings", text.Plural(all, "finding", "findings"), "looked", looked)
	if gain := Worth(first); gain != "" {
		return s + say("verdict_gain", "subject", subject(first), "gain", gain)
	}
	return s + say("verdict_first", "subject", subject(first))
}

// usualReason returns the reason for which most rules have judged no workload, in parentheses. It is empty without one.
func (r Report) usualReason() string {
	rules := make(map[string]int)
	usual := ""
	for _, s := range r.Skipped {
		rules[s.Reason]++
	}
	for _, reason := range slices.Sorted(maps.Keys(rules)) {
		if rules[reason] > rules[usual] {
			usual = reason
		}
	}
	if usual == "" {
		return ""
	}
	return say("because", "reason", usual)
}

// threads describes the threads that a finding is about, by name.
func threads(f analysis.Finding) []string {
	var lines []string
	for _, t := range f.Threads {
		name := clean(t.Name)
		if t.Count > 1 {
			name = fmt.Sprintf("%s (%d)", name, t.Count)
		}
		if t.Figure.Unit() != "" {
			lines = append(lines, say("threads_"+string(t.Figure), "name", name, "value", Value(t.Value, t.Unit)))
		}
	}
	return lines
}
