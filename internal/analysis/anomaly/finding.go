// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/window"
	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/stat"
)

// mostListed bounds the metrics in one finding.
const mostListed = 6

// Findings makes one finding of the anomalies of each workload and rule, because a restart moves many metrics at once.
// For changes it is the newest one, with the changes within the margin around it. The severity is [analysis.Info],
// because a difference is not necessarily worse.
func Findings(anomalies []Anomaly, at time.Time, margin time.Duration) []analysis.Finding {
	margin = cmp.Or(max(0, margin), Options{}.withDefaults().Margin)
	type key struct {
		query.Target
		rule string
	}
	by := make(map[key][]Anomaly)
	for _, a := range anomalies {
		k := key{query.Target{Workload: a.Workload, Instance: a.Instance}, a.Rule}
		by[k] = append(by[k], a)
	}
	findings := []analysis.Finding{}
	for _, list := range by {
		newest := slices.MaxFunc(list, func(a, b Anomaly) int { return a.Time.Compare(b.Time) }).Time
		list = slices.DeleteFunc(list, func(a Anomaly) bool { return a.Time.Before(newest.Add(-margin)) })
		slices.SortFunc(list, largest)
		findings = append(findings, findingOf(list, at))
	}
	slices.SortFunc(findings, func(a, b analysis.Finding) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Instance, b.Instance))
	})
	return findings
}

// findingOf makes a finding from the anomalies of one workload and rule, the largest first.
func findingOf(list []Anomaly, at time.Time) analysis.Finding {
	first := list[0]
	f := analysis.Finding{
		ID: analysis.ID(first.Rule, first.Workload, first.Instance), Rule: first.Rule, Workload: first.Workload, Instance: first.Instance,
		Severity: analysis.Info, Confidence: analysis.Measured, FirstSeen: first.Time, LastSeen: at,
		Sources: []string{"docs/decisions/statistics.md"},
	}
	var parts []string
	for i, a := range list {
		f.FirstSeen = earlier(f.FirstSeen, a.Time)
		if i < mostListed {
			parts = append(parts, a.text())
			f.Evidence = append(f.Evidence, a.evidence()...)
		}
	}
	if more := len(list) - mostListed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	moment := f.FirstSeen.UTC().Format("15:04:05")
	if first.Rule == ChangeRule {
		f.Title = "the level changed"
		f.Cause = fmt.Sprintf("since about %s UTC: %s", moment, strings.Join(parts, "; "))
		f.NotWhen = []string{"the load changed, and the workload itself did not"}
	} else {
		f.Title = "differs from its history"
		f.Cause = fmt.Sprintf("compared with %s: %s", first.History, strings.Join(parts, "; "))
		f.NotWhen = []string{"the workload is now used in another way"}
	}
	events, artefact := coincidences(list)
	if len(events) > 0 {
		f.Cause += ". At that time " + strings.Join(events, "; ")
	}
	switch {
	case artefact:
		f.Confidence = analysis.Possible
		f.Advice = []string{"Wait for windows after that time: the measurement itself changed."}
	case len(events) > 0:
		f.Advice = []string{"Compare the started program with the one before: version, command line, configuration."}
	default:
		f.Advice = []string{"Find what was deployed or reconfigured, or which requests changed, at that time."}
	}
	return f
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// coincidences returns each event once, and whether one changed the measurement.
func coincidences(list []Anomaly) (events []string, artefact bool) {
	for _, a := range list {
		for _, c := range a.Coincides {
			artefact = artefact || c.Artefact
			if text := fmt.Sprintf("%s (%s)", c.What, c.Time.UTC().Format("15:04:05")); !slices.Contains(events, text) {
				events = append(events, text)
			}
		}
	}
	return events, artefact
}

// text describes the change: "system calls 1200 -> 5100 calls/s (x4.3)".
func (a Anomaly) text() string {
	text := fmt.Sprintf("%s %s -> %s %s", a.Metric.Help, analysis.Figure(a.Before.Value), analysis.Figure(a.After.Value), a.Metric.Unit)
	switch {
	case a.Ratio.Bounded():
		text += fmt.Sprintf(" (x%.2g, %.2g to %.2g)", a.Ratio.Value, a.Ratio.Low, a.Ratio.High)
	case a.Before.Value > 0:
		text += fmt.Sprintf(" (x%.2g)", a.After.Value/a.Before.Value)
	}
	return text
}

func (a Anomaly) evidence() []analysis.Evidence {
	one := func(when string, i stat.Interval) analysis.Evidence {
		e := analysis.Evidence{Name: a.Metric.Name + ", " + when, Value: i.Value, Unit: unitOf(a.Metric), N: i.N, Query: a.only()}
		if i.Bounded() {
			low, high := i.Low, i.High
			e.Low, e.High = &low, &high
		}
		return e
	}
	return []analysis.Evidence{one("median before", a.Before), one("median after", a.After)}
}

// unitOf returns the unit of a metric as findings write it.
func unitOf(m window.Metric) string {
	switch {
	case m.Gauge:
		return m.Unit
	case m.Unit == "seconds/s":
		return "ratio"
	}
	return "1/s"
}

// only narrows the query to the workload.
func (a Anomaly) only() string {
	if a.Metric.Machine {
		return a.Query
	}
	narrowed, err := promql.Narrow(a.Query, []promql.Matcher{{Label: "workload", Value: a.Workload}}, func(string) bool { return true })
	if err != nil { // a malformed built-in metric
		return a.Query
	}
	return narrowed
}
