// SPDX-License-Identifier: Apache-2.0

package query

// Kind says what went wrong.
type Kind string

// The kinds of problems.
const (
	Failed  Kind = "failed"  // a query had an error or took too long; the rules that need it were not asked
	Absent  Kind = "absent"  // a query had no samples: the metric is not measured there, or nothing happened yet
	Bounded Kind = "bounded" // more samples or workloads than are looked at
	Gap     Kind = "gap"     // a workload was not there for half of the window, or the clock was set within it
	Broken  Kind = "broken"  // a rule said something that cannot be
)

// Problem is something that was not looked at. It is never a finding.
type Problem struct {
	Kind     Kind     `json:"kind"`
	Query    string   `json:"query,omitempty"`
	Workload string   `json:"workload,omitempty"`
	Instance string   `json:"instance,omitempty"`
	Error    string   `json:"error"`
	Rules    []string `json:"rules,omitempty"` // that need it; none means all
}
