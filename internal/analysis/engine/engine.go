// SPDX-License-Identifier: Apache-2.0

// Package engine evaluates diagnosis rules on stored series. For each machine it runs each query once and applies each
// rule to each workload. It ranks the findings of all machines.
//
// It does not depend on a rule, a collector, an eBPF program or a database.
package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
)

// Options bound an evaluation. The zero value means the last five minutes.
type Options struct {
	Window   time.Duration // 5 minutes
	At       time.Time     // end of the window; now
	Workload string        // only this one; empty means all
	Timeout  time.Duration // of all queries together; 30 s
	PerQuery time.Duration // of one; 10 s
	// MaxWorkloads is the maximum number of workloads of a machine, and MaxSamples the maximum number of samples per query;
	// 1,024 and 50,000. MaxFindings is the maximum number of findings, 2,000. What exceeds them is a [query.Problem].
	MaxWorkloads, MaxSamples, MaxFindings int
	Overrides                             []Override // of thresholds; the last one that applies counts
	// Open returns the severity of the open finding of a rule at a workload, or nothing. An open finding is judged by 0.8 of
	// the thresholds. Without this function nothing is open. It is called concurrently.
	Open func(rule, workload, instance string) analysis.Severity
	// Limiter states what limits each workload. Without it nothing is stated.
	Limiter *Limiter
	// Memo is for evaluations of the same rules and window, so that queries are parsed once. Without it each evaluation parses them.
	Memo *Memo
	// whole is the window of the evaluation, where a part of it is judged: see [Signal].
	whole time.Duration
	// Around runs a part of an evaluation in a goroutine of its own. It may measure it, and calls it by default.
	Around func(func())
}

func (o Options) withDefaults() Options {
	orElse := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	orElse(&o.Window, 5*time.Minute)
	orElse(&o.Timeout, 30*time.Second)
	orElse(&o.PerQuery, 10*time.Second)
	if o.At.IsZero() {
		o.At = time.Now()
	}
	if o.MaxWorkloads <= 0 {
		o.MaxWorkloads = 1024
	}
	if o.MaxSamples <= 0 {
		o.MaxSamples = 50_000
	}
	if o.Around == nil {
		o.Around = func(f func()) { f() }
	}
	if o.MaxFindings <= 0 {
		o.MaxFindings = 2000
	}
	return o
}

func (o Options) limits() query.Limits {
	return query.Limits{PerQuery: o.PerQuery, Series: o.MaxSamples}
}

// Result holds the findings of one evaluation, and the problems that prevented others.
type Result struct {
	At        time.Time          `json:"at"`
	Window    time.Duration      `json:"-"`
	Findings  []analysis.Finding `json:"findings"` // by descending weight
	Problems  []query.Problem    `json:"problems"`
	Workloads int                `json:"workloads"` // that were judged
	Checked   []string           `json:"checked"`   // rules that judged at least one workload
	Skipped   []Skip             `json:"skipped"`   // rules that judged none

	// Limits has what limits each workload, those with the most CPU time first. LimitsLeftOut is the number of
	// workloads beyond the bound.
	Limits        []Limit `json:"-"`
	LimitsLeftOut int     `json:"-"`
	// Operations has what one operation of a workload costs. An evaluation leaves it empty.
	Operations []analysis.Operations `json:"-"`
	// AtOnce has the IDs of the findings that need no second analysis: events, and findings about new workloads, which
	// have less confidence.
	AtOnce map[string]bool `json:"-"`
	// Machines are the judged ones, in the order in which they were judged.
	Machines []Machine `json:"-"`

	known  map[string]known // by instance
	others known            // of all other instances
}

// Skip is a rule that judged no workload.
type Skip struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// Evaluate runs each distinct query of the rules once for each machine, and applies each rule to each workload. An error
// means that the arguments are invalid or the context ended. A query without an answer is a problem in the result.
func Evaluate(ctx context.Context, source query.Source, rules []Rule, options Options) (Result, error) {
	o := options.withDefaults()
	if err := check(rules); err != nil {
		return Result{}, err
	}
	inner, cancel := context.WithTimeout(query.SharingLabels(ctx), o.Timeout)
	defer cancel()
	q := &inquiry{Options: o, ctx: inner, source: source, memo: cmp.Or(o.Memo, &Memo{}), asked: make(answers), problems: []query.Problem{}}
	result := q.evaluate(rules)
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("analysing the %s before %s: %w", query.Duration(o.Window), o.At.UTC().Format(time.RFC3339), err)
	}
	return result, nil
}

// check returns an error for an invalid list of rules, which is a programming error.
func check(rules []Rule) error {
	seen := make(map[string]bool)
	for _, r := range rules {
		switch {
		case r.Name == "" || r.Judge == nil || len(r.Signals) == 0:
			return fmt.Errorf("rule %q: it needs a name, signals and a function Judge", r.Name)
		case seen[r.Name]:
			return fmt.Errorf("rule %q: the name is not unique", r.Name)
		}
		if wrong := r.checkTrends(); wrong != "" {
			return fmt.Errorf("rule %q: %s", r.Name, wrong)
		}
		seen[r.Name] = true
		names := make(map[string]bool)
		for _, s := range r.Signals {
			if s.Name == "" || s.Query == "" || names[s.Name] {
				return fmt.Errorf("rule %q, signal %q: it needs a query and a name that is unique in the rule", r.Name, s.Name)
			}
			names[s.Name] = true
		}
	}
	return nil
}
