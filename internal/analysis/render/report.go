// SPDX-License-Identifier: Apache-2.0

// Package render writes the result of an analysis for people (text, Markdown) and for programs (JSON).
//
// The verdict comes first, and unjudged workloads are listed. It does not evaluate rules or query a source. Every figure has
// its unit. The schema of the JSON is docs/user/findings.schema.json.
package render

import (
	"io"
	"math"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/jsonapi"
)

// schemaVersion is the version of the JSON. It increases when a member changes its meaning or is removed.
const schemaVersion = 1

// Usual is the default number of listed findings.
const Usual = 5

// Report is one analysis in its published form.
type Report struct {
	Schema    int                `json:"schema"`
	Source    string             `json:"source"` // of the series
	At        time.Time          `json:"at"`     // end of the window
	Window    float64            `json:"window_seconds"`
	Workloads int                `json:"workloads"` // that were judged
	Findings  []analysis.Finding `json:"findings"`  // by descending weight
	// Causes has the rules with findings on several machines, those first that are certain to save the most cores. It counts
	// findings that are omitted too.
	Causes []Cause `json:"causes"`
	// Limits has what limits each workload, also without a finding: those with the most CPU time first.
	Limits        []engine.Limit `json:"limits"`
	LimitsLeftOut int            `json:"limits_left_out"` // further workloads
	// Operations has what one operation costs, for workloads whose application counts them.
	Operations []analysis.Operations `json:"operations"`
	LeftOut    int                   `json:"left_out"` // further findings that are not listed
	Muted      int                   `json:"muted"`    // findings that a silence hides; they are listed only on request
	Problems   []query.Problem       `json:"problems"` // what could not be judged
	Checked    []string              `json:"checked"`  // rules that judged at least one workload
	Skipped    []engine.Skip         `json:"skipped"`  // rules that judged none
	Warnings   []string              `json:"warnings"` // of the source
	Windows    []Box                 `json:"windows,omitempty"`
}

// New makes a report with at most this many findings; 0 means all.
func New(source string, r engine.Result, most int, warnings []string) Report {
	report := Report{
		Schema: schemaVersion, Source: source, At: r.At.UTC(), Window: r.Window.Seconds(), Workloads: r.Workloads,
		Findings: slices.Clone(r.Findings), Problems: r.Problems, Checked: r.Checked, Skipped: r.Skipped, Warnings: warnings,
	}
	report.Causes = causesOf(r.Findings)
	if most > 0 && len(report.Findings) > most {
		report.LeftOut = len(report.Findings) - most
		report.Findings = report.Findings[:most]
	}
	report.Limits, report.LimitsLeftOut = orEmpty(slices.Clone(r.Limits)), r.LimitsLeftOut
	for i := range report.Limits {
		report.Limits[i].Evidence = numbers(report.Limits[i].Evidence)
	}
	report.Operations = orEmpty(slices.Clone(r.Operations))
	for i := range report.Operations {
		o := &report.Operations[i]
		o.Costs, o.Latency, o.Missing = numbers(o.Costs), numbers(o.Latency), orEmpty(o.Missing)
	}
	// An empty list is [] in JSON, not null.
	report.Findings = orEmpty(report.Findings)
	report.Problems, report.Skipped = orEmpty(report.Problems), orEmpty(report.Skipped)
	report.Checked, report.Warnings = orEmpty(report.Checked), orEmpty(report.Warnings)
	for i := range report.Findings {
		f := &report.Findings[i]
		f.Evidence, f.Advice, f.Sources = numbers(f.Evidence), orEmpty(f.Advice), orEmpty(f.Sources)
		f.FirstSeen, f.LastSeen = f.FirstSeen.UTC(), f.LastSeen.UTC()
		f.AbsentSince = f.AbsentSince.UTC()
		if f.Gain != nil {
			gain := *f.Gain
			gain.Assumptions = orEmpty(gain.Assumptions)
			f.Gain = &gain
		}
		if f.Saving != nil {
			saving := *f.Saving
			saving.Assumptions = orEmpty(saving.Assumptions)
			f.Saving = &saving
		}
	}
	return report
}

// Silenced returns the report with findings that are marked with their silences. It lists those that a silence hides only
// if all is true.
func (r Report) Silenced(marked []analysis.Finding, all bool) Report {
	listed, hidden := analysis.Listed(marked)
	r.Findings, r.Muted = listed, hidden
	if all {
		r.Findings = marked
	}
	r.Causes = causesOf(r.Findings)
	return r
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// numbers returns the evidence that is finite. JSON has no other numbers, and one infinite value must not prevent the
// report.
func numbers(all []analysis.Evidence) []analysis.Evidence {
	kept := []analysis.Evidence{}
	for _, e := range all {
		if !math.IsNaN(e.Value) && !math.IsInf(e.Value, 0) {
			kept = append(kept, e)
		}
	}
	return kept
}

// JSON writes the report as JSON.
func (r Report) JSON(w io.Writer) error {
	return jsonapi.Print(w, r)
}

// Severities returns the names of the severities in rising order.
func Severities() []string {
	return []string{string(analysis.Info), string(analysis.Low), string(analysis.Medium), string(analysis.High)}
}

// AtLeast counts the findings of at least this severity.
func AtLeast(findings []analysis.Finding, least analysis.Severity) int {
	return analysis.CountAtLeast(findings, func(f analysis.Finding) analysis.Severity { return f.Severity }, least)
}
