// SPDX-License-Identifier: Apache-2.0

// Package engine evaluates diagnosis rules on stored series: it asks each query once, lets each rule look at each
// workload, and ranks the findings.
//
// It refuses to know a rule, a collector, an eBPF program or a database.
package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/query"
)

// Options bound an evaluation. The zero value is five minutes up to now.
type Options struct {
	Window   time.Duration // 5 minutes
	At       time.Time     // end of the window; now
	Workload string        // only this one; empty is every one
	Timeout  time.Duration // of all queries together; 30 s
	PerQuery time.Duration // of one; 10 s
	// MaxWorkloads are judged, MaxSamples taken from a query; 1,000 and 50,000. What exceeds them is a [Problem].
	MaxWorkloads, MaxSamples int
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
		o.MaxWorkloads = 1000
	}
	if o.MaxSamples <= 0 {
		o.MaxSamples = 50_000
	}
	return o
}

func (o Options) limits() query.Limits {
	return query.Limits{PerQuery: o.PerQuery, Series: o.MaxSamples}
}

// Result is what one evaluation found, and what it could not look at.
type Result struct {
	At        time.Time          `json:"at"`
	Window    time.Duration      `json:"-"`
	Findings  []analysis.Finding `json:"findings"` // the most worthwhile first
	Problems  []query.Problem    `json:"problems"`
	Workloads int                `json:"workloads"` // that were judged
	Checked   []string           `json:"checked"`   // rules that looked at one workload at least
	Skipped   []Skip             `json:"skipped"`   // rules that looked at none

	blind          bool // nothing could be judged
	unknownRules   map[string]bool
	unknownTargets map[query.Target]bool
}

// Knows tells whether a cause would have been found if it were there: the rule had its data and the workload, if it
// still exists, was there for long enough.
func (r Result) Knows(rule, workload, instance string) bool {
	return !r.blind && !r.unknownRules[rule] && !r.unknownTargets[query.Target{Workload: workload, Instance: instance}]
}

// Skip is a rule that was not asked about any workload.
type Skip struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// Evaluate asks each distinct query of the rules once and lets each rule look at each workload. The error is of what
// was asked for; what the source could not answer is in the result's problems.
func Evaluate(ctx context.Context, source query.Source, rules []Rule, options Options) (Result, error) {
	o := options.withDefaults()
	if err := check(rules); err != nil {
		return Result{}, err
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	q := &inquiry{Options: o, ctx: ctx, source: source, problems: []query.Problem{}}
	seen := observe(q, rules)
	targets, gaps := seen.targets(q)
	if err := outer.Err(); err != nil {
		return Result{}, fmt.Errorf("analysing the %s before %s: %w", query.Duration(o.Window), o.At.UTC().Format(time.RFC3339), err)
	}
	judged := judgeAll(q, seen, rules, targets)
	result := Result{
		At: o.At, Window: o.Window, Findings: rank(judged.drafts), Problems: q.problems, Workloads: len(judged.workloads),
		Checked: judged.checked, Skipped: judged.skipped, blind: seen.blind != "",
		unknownRules: seen.uncountedRules, unknownTargets: make(map[query.Target]bool),
	}
	for _, rule := range judged.unanswered {
		result.unknownRules[rule] = true
	}
	for _, t := range slices.Concat(gaps, judged.gaps) {
		result.unknownTargets[t] = true
	}
	return result, nil
}

// check tells what is wrong with a list of rules, which is their author's fault.
func check(rules []Rule) error {
	seen := make(map[string]bool)
	for _, r := range rules {
		switch {
		case r.Name == "" || r.Judge == nil || len(r.Signals) == 0:
			return fmt.Errorf("rule %q: it needs a name, signals and a function Judge", r.Name)
		case seen[r.Name]:
			return fmt.Errorf("rule %q: there are two of that name", r.Name)
		}
		seen[r.Name] = true
		names := make(map[string]bool)
		for _, s := range r.Signals {
			if s.Name == "" || s.Query == "" || names[s.Name] {
				return fmt.Errorf("rule %q, signal %q: it needs a query and a name that no other signal of the rule has", r.Name, s.Name)
			}
			names[s.Name] = true
		}
	}
	return nil
}
