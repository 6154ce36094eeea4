// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
)

// A Rule finds one cause. Each rule has its own file in package rules.
type Rule struct {
	Name    string // kebab-case, stable: part of a finding's ID
	Title   string // the cause in a few words
	Signals []Signal
	Trends  []Trend
	// Machine selects machines instead of workloads. Judge is then called once for each machine, with the samples that
	// belong to no workload.
	Machine bool
	// Judge judges one workload. It returns nil when the cause is absent or cannot be determined. It is not called if a
	// query of the rule's signals failed. A workload that is new is judged over a shorter window.
	Judge   func(Workload) *Verdict
	NotWhen []string
	Sources []string
	// CompetesFor is the resource that a workload with this finding competes for with others on the machine, if that can be
	// the reason. New workloads that use it are then named as events before the finding.
	CompetesFor analysis.Resource
	// Threads is the figure of single threads that the evidence is about. It is empty if the evidence is not about threads.
	Threads analysis.ThreadFigure
	// Code is the event whose stacks show the code that is the cause. It is empty if no code is the cause.
	Code codelink.Event
	// Waits selects waits of Code.
	Waits codelink.Reason
	// Thresholds may be replaced for some workloads: see [Override].
	Thresholds []Threshold
}

// Runbook returns the path of the rule's page, a file in docs/runbooks with the rule's name.
func (r Rule) Runbook() string { return "docs/runbooks/" + r.Name + ".md" }

// A Signal is a query whose result a rule reads. "$window" in it stands for the time range of the analysis, such as
// "5m". New workloads are judged over a part of it, and "$whole" stands for all of it then too. The result must keep the labels
// workload and instance: "sum by (workload, instance) (...)". A sample with an empty label
// workload, or without one, belongs to the machine and is visible to every workload on it.
type Signal struct {
	Name  string
	Query string
	Unit  string
	Help  string
	// PerEvent is set if the signal is a figure of single events, such as a mean time. It has no samples while there are none.
	PerEvent bool
}

// With names the samples of the signal that have this value of a label, as [Verdict.Evidence] needs it.
func (s Signal) With(label, value string) string { return s.Name + "{" + label + "=" + value + "}" }

// A Verdict is the conclusion of a rule about one workload.
type Verdict struct {
	Severity   analysis.Severity // empty: derived from the gain
	Confidence analysis.Confidence
	Cause      string // one sentence with figures
	// Evidence names the signals that support the verdict, the most important first. "calls" is the sum of a signal's
	// samples, "calls{syscall=futex}" the sum of the samples with this label.
	Evidence   []string
	Advice     []string
	Saving     *estimate.Saving
	Gain       *estimate.Gain // of waits that were measured; that of a saving follows from the limit: see [Verdict.Saves]
	Code       codelink.Event // instead of that of the rule
	Event      bool           // it happened within the window, such as a process that was killed, and need not go on
	Supersedes []string       // rules whose findings at the same workload this one explains
	Stage      Stage          // whether it explains the events that it counts
	// Needs is the least part of its events with which the rule still finds its cause. What other findings leave of them may
	// be less.
	Needs float64

	most  analysis.Severity // the highest one that a severity derived from the gain may have; empty: any
	draws []draw
	claim *estimate.Claim // by which the gain follows from the saving; nil for a wait that was measured
}

// Saves states that the cause takes low to high cores of CPU time. The throughput rises only if something limits the
// workload: see [Load.Limit].
func (v *Verdict) Saves(w Workload, low, high float64, assumptions ...string) {
	v.saves(w, low, high, estimate.Claim{Limit: w.Load.Limit(0, false)}, assumptions)
}

// SavesAndRuns is [Verdict.Saves] for a cause that also keeps up to waiting threads from running. otherwise is what limits
// the throughput if no measurement shows a limit of CPU time. It may be empty.
func (v *Verdict) SavesAndRuns(w Workload, low, high, waiting float64, otherwise string, assumptions ...string) {
	claim := estimate.Claim{Limit: w.Load.Limit(0, false), Waiting: waiting}
	if claim.Limit == "" {
		claim.Limit, claim.Unsure = otherwise, true
	}
	v.saves(w, low, high, claim, assumptions)
}

// SavesSpinning is [Verdict.Saves] for a cause that keeps threads busy: busy threads then show no limit.
func (v *Verdict) SavesSpinning(w Workload, low, high float64, assumptions ...string) {
	v.saves(w, low, high, estimate.Claim{Limit: w.Load.Limit(0, true)}, assumptions)
}

// Waits states that threads of the workload wait because of the cause, for a share of the time between low and high. waiting
// is the number of threads that wait on average. If nothing limits the throughput, the wait only delays the work: the severity is low.
func (v *Verdict) Waits(w Workload, waiting, low, high float64, assumptions ...string) {
	v.Gain, v.claim = nil, nil
	if limit := w.Load.Limit(waiting, false); limit != "" {
		v.Gain = estimate.Amdahl(limit, low, high, assumptions...)
	} else {
		v.Severity = analysis.Low
	}
}

func (v *Verdict) saves(w Workload, low, high float64, claim estimate.Claim, assumptions []string) {
	v.Saving = estimate.Saves(low, high, assumptions...)
	v.Gain, v.claim = v.Saving.Gain(w.Load.Cores, claim), &claim
}

// A Workload holds the samples of one rule's signals for one workload and window.
type Workload struct {
	Name     string
	Instance string
	Window   float64 // seconds
	Whole    float64 // seconds of the evaluation's window, of which a new workload is judged by a part
	Clock    cost.Clock
	OCALL    cost.Cost // of one exit and re-entry on its machine: measured there, or [cost.OCALL]
	Load     Load
	values   map[string][]query.Sample
	strict   bool // values has a key for each signal of the rule, and thresholds for each threshold

	thresholds map[string]float64   // by name
	trends     map[string][]float64 // by query
	// trendWindow is the window of the trends in seconds. A cause is looked for again in the newest part of it, with the same
	// trends.
	trendWindow float64
	was         analysis.Severity // of the rule's open finding at this workload; empty: none is open
}

// OCALLMeasured reports whether the cost of an OCALL was measured on the machine.
func (w Workload) OCALLMeasured() bool {
	_, measured := w.OCALL.(cost.Seconds)
	return measured
}

// NewWorkload returns a workload with these samples, for tests of a single rule.
func NewWorkload(name string, window time.Duration, values map[string][]query.Sample) Workload {
	return Workload{Name: name, Window: window.Seconds(), Whole: window.Seconds(), Clock: cost.UnknownClock, OCALL: cost.OCALL, Load: UnknownLoad(), values: values}
}

// Samples returns the samples of a signal. An unmeasured signal has none: absent is never zero.
//
// It panics when the rule does not declare the signal, and the engine reports the rule as broken. Otherwise such a rule
// would never find anything.
func (w Workload) Samples(signal Signal) []query.Sample {
	samples, declared := w.values[signal.Name]
	if !declared && w.strict {
		panic(fmt.Sprintf("it reads the signal %q and does not declare it", signal.Name))
	}
	return samples
}

// View returns a workload as the engine shows it to this rule: with the signals that the rule declares, and no others.
func (r Rule) View(name string, window time.Duration, values map[string][]query.Sample) Workload {
	w := NewWorkload(name, window, make(map[string][]query.Sample, len(r.Signals)))
	w.strict, w.thresholds = true, r.defaults()
	for _, s := range r.Signals {
		w.values[s.Name] = values[s.Name]
	}
	return w
}

// Value returns the sum of a signal's samples, and whether there was any sample.
func (w Workload) Value(signal Signal) (sum float64, measured bool) {
	samples := w.Samples(signal)
	for _, s := range samples {
		sum += s.Value
	}
	return sum, len(samples) > 0
}

// By returns the sums of a signal's samples by the values of one label.
func (w Workload) By(signal Signal, label string) map[string]float64 {
	samples := w.Samples(signal)
	by := make(map[string]float64, len(samples))
	for _, s := range samples {
		by[s.Labels[label]] += s.Value
	}
	return by
}
