// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"math"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/lib/text"
)

// mostMembers bounds the findings that are listed of a cause.
const mostMembers = 50

// Cause is one rule with its findings on all machines.
type Cause struct {
	Rule      string            `json:"rule"`
	Title     string            `json:"title"` // the cause as a noun phrase
	Severity  analysis.Severity `json:"severity"`
	Machines  int               `json:"machines"`
	Workloads int               `json:"workloads"` // by name; the same name on two machines counts once
	Findings  int               `json:"findings"`
	// SavedLow and SavedHigh are the sums of the savings in cores, over the findings that have one.
	SavedLow  float64  `json:"saved_cores_low"`
	SavedHigh float64  `json:"saved_cores_high"`
	Members   []Member `json:"members"` // the findings with the largest savings, at most 50
}

// Member is one finding of a cause.
type Member struct {
	ID        string            `json:"id"`
	Workload  string            `json:"workload"` // empty: the whole machine
	Instance  string            `json:"instance"`
	Severity  analysis.Severity `json:"severity"`
	SavedLow  float64           `json:"saved_cores_low"` // 0 without a saving
	SavedHigh float64           `json:"saved_cores_high"`
}

// causesOf returns those of [AllCauses] that several machines have.
func causesOf(findings []analysis.Finding) []Cause {
	return slices.DeleteFunc(AllCauses(findings), func(c Cause) bool { return c.Machines < 2 })
}

// AllCauses groups findings by rule, and returns the rules, those first that are certain to save the most cores in total.
// Findings without a machine belong to none.
func AllCauses(findings []analysis.Finding) []Cause {
	by := make(map[string][]analysis.Finding)
	for _, f := range findings {
		if f.Instance != "" {
			by[f.Rule] = append(by[f.Rule], f)
		}
	}
	causes := []Cause{}
	for _, group := range by {
		causes = append(causes, causeOf(group))
	}
	slices.SortFunc(causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.SavedLow, a.SavedLow), cmp.Compare(b.SavedHigh, a.SavedHigh),
			cmp.Compare(b.Severity.LeastGain(), a.Severity.LeastGain()), cmp.Compare(b.Machines, a.Machines), cmp.Compare(a.Rule, b.Rule))
	})
	return causes
}

// causeOf adds up the findings of one rule.
func causeOf(group []analysis.Finding) Cause {
	c := Cause{Rule: group[0].Rule, Title: group[0].Title, Severity: analysis.Info, Findings: len(group)}
	machines, workloads := make(map[string]bool), make(map[string]bool)
	for _, f := range group {
		m := Member{ID: f.ID, Workload: f.Workload, Instance: f.Instance, Severity: f.Severity}
		if f.Saving != nil {
			m.SavedLow, m.SavedHigh = f.Saving.Low, f.Saving.High
		}
		c.SavedLow, c.SavedHigh = sum(c.SavedLow, m.SavedLow), sum(c.SavedHigh, m.SavedHigh)
		if !c.Severity.AtLeast(f.Severity) {
			c.Severity = f.Severity
		}
		machines[f.Instance] = true
		if f.Workload != "" {
			workloads[f.Workload] = true
		}
		c.Members = append(c.Members, m)
	}
	c.Machines, c.Workloads = len(machines), len(workloads)
	slices.SortStableFunc(c.Members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(b.SavedLow, a.SavedLow), cmp.Compare(b.SavedHigh, a.SavedHigh), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Workload, b.Workload))
	})
	c.Members = c.Members[:min(len(c.Members), mostMembers)]
	return c
}

// sum is finite: JSON has no other numbers, and what one machine claims must not prevent the report.
func sum(a, b float64) float64 { return min(a+b, math.MaxFloat64) }

// Text describes a cause in a sentence or two.
func (c Cause) Text() string {
	line := say("fleet_cause", "title", clean(c.Title), "rule", clean(c.Rule), "severity", string(c.Severity),
		"machines", text.Plural(c.Machines, "machine", "machines"), "findings", text.Plural(c.Findings, "finding", "findings"))
	if saved := savingText(estimate.Saves(c.SavedLow, c.SavedHigh)); saved != "" && len(c.Members) > 0 {
		first := analysis.Finding{Workload: c.Members[0].Workload, Instance: c.Members[0].Instance}
		line += say("fleet_saved", "saving", saved, "first", subject(first))
	}
	return line
}

// causes describes each cause that several machines have.
func (r Report) causes() []string {
	var lines []string
	for _, c := range r.Causes {
		lines = append(lines, c.Text())
	}
	return lines
}
