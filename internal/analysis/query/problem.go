// SPDX-License-Identifier: Apache-2.0

package query

// Kind is a kind of problem.
type Kind string

// The kinds of problems.
const (
	Failed  Kind = "failed"  // a query had an error or took too long; the rules that need it did not run
	Absent  Kind = "absent"  // a query had no samples: the metric is not measured, or no event has happened yet
	Bounded Kind = "bounded" // more samples or workloads than the limit
	Gap     Kind = "gap"     // a workload existed for less than half of the window, or the clock was set within it
	Broken  Kind = "broken"  // a rule returned an invalid verdict
)

// Problem is something that could not be judged. It is never a finding.
type Problem struct {
	Kind     Kind     `json:"kind"`
	Query    string   `json:"query,omitempty"`
	Workload string   `json:"workload,omitempty"`
	Instance string   `json:"instance,omitempty"`
	Error    string   `json:"error"`
	Rules    []string `json:"rules,omitempty"` // affected rules; empty means all
}
