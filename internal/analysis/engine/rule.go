// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/query"
)

// A Rule finds one cause. Each lives in a file of its own in the package rules.
type Rule struct {
	Name    string // kebab-case, stable: part of a finding's ID
	Title   string // the cause as a noun phrase
	Signals []Signal
	// Machine says that the rule looks at machines: Judge is asked once for each, with a workload without a name that
	// has what belongs to no workload.
	Machine bool
	// Judge looks at one workload. It returns nil when the cause is not there, and when it cannot know. It is not
	// asked when a query of its signals failed, and not for a workload that was there for less than half of the window.
	Judge   func(Workload) *Verdict
	NotWhen []string
	Sources []string
}

// Runbook is the page about the rule, a file of docs/runbooks. Its name is the rule's name.
func (r Rule) Runbook() string { return "docs/runbooks/" + r.Name + ".md" }

// A Signal is a query whose result a rule reads by name. "$window" in it is the time range that is looked at, such as
// "5m". The result must keep the labels workload and instance: "sum by (workload, instance) (...)". Without a label
// workload, or with an empty one, it belongs to the machine and is seen by every workload on it.
type Signal struct {
	Name  string
	Query string
	Unit  string
	Help  string
}

// With names the samples of the signal that have this value of a label, as [Verdict.Evidence] needs it.
func (s Signal) With(label, value string) string { return s.Name + "{" + label + "=" + value + "}" }

// A Verdict is what a rule says of one workload.
type Verdict struct {
	Severity   analysis.Severity // empty: by the gain
	Confidence analysis.Confidence
	Cause      string // one sentence with figures
	// Evidence names the signals that show it, the most telling first. "calls" is the sum of a signal's samples,
	// "calls{syscall=futex}" of those with that label.
	Evidence   []string
	Advice     []string
	Gain       *analysis.Gain
	Supersedes []string // rules whose finding at the same workload this one explains
}

// A Workload is what the signals of one rule say of one workload in one window.
type Workload struct {
	Name     string
	Instance string
	Window   float64 // seconds
	Clock    cost.Clock
	OCALL    cost.Cost // of one exit and re-entry on its machine: [cost.OCALL], or what was measured there
	values   map[string][]query.Sample
	strict   bool // values has a key for each signal of the rule
}

// OCALLMeasured tells whether the cost of an OCALL was measured on the machine.
func (w Workload) OCALLMeasured() bool {
	_, measured := w.OCALL.(cost.Seconds)
	return measured
}

// NewWorkload makes a workload by hand, for tests of a single rule.
func NewWorkload(name string, window time.Duration, values map[string][]query.Sample) Workload {
	return Workload{Name: name, Window: window.Seconds(), Clock: cost.UnknownClock, OCALL: cost.OCALL, values: values}
}

// Samples are those of one signal. What was not measured has none: absent is never zero.
//
// A rule that reads a signal which it does not declare would find nothing for ever: that panics, and the engine reports
// the rule as broken.
func (w Workload) Samples(signal Signal) []query.Sample {
	samples, declared := w.values[signal.Name]
	if !declared && w.strict {
		panic(fmt.Sprintf("it reads the signal %q and does not declare it", signal.Name))
	}
	return samples
}

// View makes a workload by hand as the engine shows it to this rule: with the signals that the rule declares, and no
// others.
func (r Rule) View(name string, window time.Duration, values map[string][]query.Sample) Workload {
	w := NewWorkload(name, window, make(map[string][]query.Sample, len(r.Signals)))
	w.strict = true
	for _, s := range r.Signals {
		w.values[s.Name] = values[s.Name]
	}
	return w
}

// Value is the sum of a signal's samples, and whether there was any.
func (w Workload) Value(signal Signal) (sum float64, measured bool) {
	samples := w.Samples(signal)
	for _, s := range samples {
		sum += s.Value
	}
	return sum, len(samples) > 0
}

// By maps the values of one label to a signal's samples, summed.
func (w Workload) By(signal Signal, label string) map[string]float64 {
	by := make(map[string]float64)
	for _, s := range w.Samples(signal) {
		by[s.Labels[label]] += s.Value
	}
	return by
}
