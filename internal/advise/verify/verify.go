// SPDX-License-Identifier: Apache-2.0

// Package verify compares what advice predicted with what runs show: the findings of the runs before a change, and the
// comparison of the runs before and after it.
//
// It judges with the statistics of the comparison. It reads no file and analyses no run.
package verify

import (
	"fmt"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/run/compare"
)

// Claim is what advice promises.
type Claim string

// The claims.
const (
	throughputName Claim = "throughput" // gain as a ratio: 0.2 is 20 % more
	cpuTimeName    Claim = "CPU time"   // saved, in cores, for as many operations a second as before
)

// Verdict says whether a prediction came true.
type Verdict string

// The verdicts.
const (
	Held      Verdict = "held"             // a change was found, and its interval meets the prediction
	Less      Verdict = "less"             // the whole interval is below the prediction, or it got worse
	More      Verdict = "more"             // the whole interval is above the prediction
	Open      Verdict = "open"             // no change was found, and the interval meets the prediction
	Undecided Verdict = "cannot be judged" // Why says what is missing
)

// Span is an interval.
type Span struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Observation is a median with its 95 % interval.
type Observation struct {
	Median float64 `json:"median"`
	Span
}

// Row is one prediction with what was observed.
type Row struct {
	Rule      string       `json:"rule"`
	Title     string       `json:"title"`
	After     string       `json:"after"` // the group of runs after the change
	Claim     Claim        `json:"claim"`
	Unit      string       `json:"unit"` // of both spans, as metric names spell it
	Predicted Span         `json:"predicted"`
	Observed  *Observation `json:"observed,omitempty"` // absent if the repetitions do not bound it
	N         [2]int       `json:"repetitions"`        // before and after
	Verdict   Verdict      `json:"verdict"`
	Why       string       `json:"why,omitempty"`
}

// Findings are the findings of an analysis of one run.
type Findings struct {
	List   []analysis.Finding
	Judged []string // rules that could judge the run
}

// same reports whether two findings are of one cause. The rule exitless has several: they differ in what a finding explains.
func same(a, b analysis.Finding) bool {
	return a.Rule == b.Rule && slices.Equal(slices.Sorted(slices.Values(a.Explains)), slices.Sorted(slices.Values(b.Explains)))
}

// lasts returns why a finding of the runs before is not known to be gone, or "".
func (f Findings) lasts(found analysis.Finding) string {
	if slices.ContainsFunc(f.List, func(other analysis.Finding) bool { return same(found, other) }) {
		return "the cause is still there: the advice was not followed, or it did not help"
	}
	if !slices.Contains(f.Judged, found.Rule) {
		return "the rule could not judge the run after the change"
	}
	return ""
}

// Tables are comparisons of the same groups.
type Tables struct {
	Work   *compare.Table // per operation, or per second if the operations are not known
	Second *compare.Table // per second
}

// Judge compares what the findings of the baseline predicted with the group j of the tables.
func Judge(t Tables, j int, before, after Findings) []Row {
	var rows []Row
	gone := make(map[Claim]int)
	for i, found := range before.List {
		if slices.ContainsFunc(before.List[:i], func(other analysis.Finding) bool { return same(found, other) }) {
			continue // of another instance
		}
		for _, row := range predictions(found) {
			row.After = t.Work.Groups[j].Name
			t.observe(&row, j)
			if why := after.lasts(found); why != "" {
				row.Verdict, row.Why = Undecided, why
			} else {
				gone[row.Claim]++
			}
			rows = append(rows, row)
		}
	}
	for i := range rows {
		if n := gone[rows[i].Claim]; n > 1 && rows[i].Verdict != Undecided {
			rows[i].Verdict, rows[i].Why = Undecided, fmt.Sprintf("%d causes are gone at once, and the measured change is that of all together: change one thing at a time", n)
		}
	}
	return rows
}

// predictions returns what a finding promises.
func predictions(found analysis.Finding) []Row {
	var rows []Row
	if g := found.Gain; g != nil {
		rows = append(rows, Row{Rule: found.Rule, Title: found.Title, Claim: throughputName, Unit: "ratio", Predicted: Span{g.Low, g.High}})
	}
	if s := found.Saving; s != nil {
		rows = append(rows, Row{Rule: found.Rule, Title: found.Title, Claim: cpuTimeName, Unit: "cores", Predicted: Span{s.Low, s.High}})
	}
	return rows
}

// observe fills in what the tables show, and the verdict on it.
func (t Tables) observe(row *Row, j int) {
	found := throughput(t.Work)
	if row.Claim == cpuTimeName {
		found = cpu(t.Work)
	}
	if found == nil {
		row.Verdict, row.Why = Undecided, "the runs have no "+map[Claim]string{throughputName: "outcome throughput", cpuTimeName: "CPU time"}[row.Claim]
		return
	}
	cells := found.Cells
	row.N = [2]int{len(cells[t.Work.Baseline].Values), len(cells[j].Values)}
	c := cells[j].Change
	if c == nil || !c.Ratio.Bounded() {
		row.Verdict, row.Why = Undecided, "too few repetitions"
		return
	}
	if row.Claim == throughputName {
		row.Observed = &Observation{c.Ratio.Value - 1, Span{c.Ratio.Low - 1, c.Ratio.High - 1}}
	} else {
		second := cpu(t.Second)
		if second == nil {
			row.Verdict, row.Why = Undecided, "the runs have no CPU time"
			return
		}
		cores := second.Cells[t.Second.Baseline].Median.Value
		row.Observed = &Observation{cores * (1 - c.Ratio.Value), Span{cores * (1 - c.Ratio.High), cores * (1 - c.Ratio.Low)}}
	}
	row.Verdict, row.Why = verdict(row.Predicted, row.Observed.Span, c)
}

// verdict compares the intervals. Whether there is a change at all is what the comparison says.
func verdict(predicted, observed Span, c *compare.Change) (v Verdict, why string) {
	switch {
	case c.Verdict == compare.Refused:
		return Undecided, "the machines differ: " + strings.Join(c.Explains[:min(len(c.Explains), 5)], ", ")
	case c.Verdict == compare.TooFew:
		return Undecided, "too few repetitions for the number of metrics"
	case c.Verdict.Sure() && observed.High < 0, observed.High < predicted.Low:
		return Less, ""
	case c.Verdict.Sure() && observed.Low > predicted.High:
		return More, ""
	case c.Verdict.Sure():
		return Held, ""
	}
	return Open, "no change was found: more repetitions may show one"
}

// throughput returns the row of the outcome, or nil.
func throughput(t *compare.Table) *compare.Row {
	return row(t, func(m compare.Metric) bool { return m.Area == compare.Outcome && m.ID() == "throughput" })
}

// cpu returns the row of the CPU time of all modes, or nil.
func cpu(t *compare.Table) *compare.Row {
	return row(t, func(m compare.Metric) bool { return m.Series == "teescope_cpu_seconds_total" && m.Part == "" })
}

func row(t *compare.Table, is func(compare.Metric) bool) *compare.Row {
	if i := slices.IndexFunc(t.Rows, func(r compare.Row) bool { return is(r.Metric) }); i >= 0 {
		return &t.Rows[i]
	}
	return nil
}
