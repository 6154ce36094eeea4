// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
)

// A Threshold is a number of a rule that a user may replace for some workloads.
type Threshold struct {
	Name    string // unique in the rule
	Default float64
	Unit    string // as metric names spell it
	Help    string
}

// An Override replaces a threshold of a rule for the workloads that it applies to.
type Override struct {
	Rule, Name string
	Value      float64
	Applies    func(workload, instance string) bool
}

// Threshold returns the value of a threshold for the workload. It panics when the rule does not declare the threshold,
// which then could not be replaced.
func (w Workload) Threshold(t Threshold) float64 {
	value, declared := w.thresholds[t.Name]
	if !declared {
		if w.strict {
			panic(fmt.Sprintf("it reads the threshold %q and does not declare it", t.Name))
		}
		return t.Default
	}
	return value
}

// defaults returns the thresholds of a rule by name.
func (r Rule) defaults() map[string]float64 {
	all := make(map[string]float64, len(r.Thresholds))
	for _, t := range r.Thresholds {
		all[t.Name] = t.Default
	}
	return all
}

// thresholds returns the thresholds of a rule for a workload. If several overrides apply, the last one counts.
func (o Options) thresholds(r Rule, workload, instance string) map[string]float64 {
	if len(r.Thresholds) == 0 {
		return nil
	}
	all := r.defaults()
	for _, by := range o.Overrides {
		if _, declared := all[by.Name]; declared && by.Rule == r.Name && by.Applies(workload, instance) {
			all[by.Name] = by.Value
		}
	}
	return all
}

// replaced lists the thresholds of a rule that differ from their defaults for a workload.
func replaced(r Rule, w Workload) []analysis.Replaced {
	var all []analysis.Replaced
	for _, t := range r.Thresholds {
		if value := w.Threshold(t); value != t.Default {
			all = append(all, analysis.Replaced{Name: t.Name, Value: value, Default: t.Default, Unit: t.Unit})
		}
	}
	return all
}
