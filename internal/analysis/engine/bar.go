// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/teescope/teescope/internal/analysis"

// An open finding stays until its figures are clearly below what opened it: below this part of each threshold. Proposed:
// two standard deviations of a load that varies by 10 %.
const closing = analysis.Closing

// Least returns the bar that a figure must reach for a finding: the threshold, or 0.8 of it while the rule's finding at this
// workload is open.
func (w Workload) Least(threshold float64) float64 {
	return w.LeastWhile(analysis.Info, threshold)
}

// Most is [Workload.Least] for a figure that must not exceed a threshold.
func (w Workload) Most(threshold float64) float64 {
	if w.was == "" {
		return threshold
	}
	return threshold / closing
}

// LeastWhile is [Workload.Least] for a figure that decides about a severity: the bar is lower only while the finding is open
// with that severity or a higher one.
func (w Workload) LeastWhile(severity analysis.Severity, threshold float64) float64 {
	if w.was == "" || !w.was.AtLeast(severity) {
		return threshold
	}
	return closing * threshold
}

// LeastFor is [Workload.Least] for a threshold that the configuration may replace.
func (w Workload) LeastFor(t Threshold) float64 { return w.Least(w.Threshold(t)) }

// MostFor is [Workload.Most] for a threshold that the configuration may replace.
func (w Workload) MostFor(t Threshold) float64 { return w.Most(w.Threshold(t)) }

// WhileOpen returns the workload as a rule sees it while its finding is open with this severity.
func (w Workload) WhileOpen(severity analysis.Severity) Workload {
	w.was = severity
	w.Load.open = severity != ""
	return w
}

// least returns the bar for what limits the throughput.
func (l Load) least(threshold float64) float64 {
	if l.open {
		return closing * threshold
	}
	return threshold
}

// opened returns the severity of the open finding of a rule at a workload, or nothing.
func (o Options) opened(rule, workload, instance string) analysis.Severity {
	if o.Open == nil {
		return ""
	}
	return o.Open(rule, workload, instance)
}
