// SPDX-License-Identifier: Apache-2.0

// Package engine evaluates diagnosis rules on stored series. It runs each query once, applies each rule to each
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

// Options bound an evaluation. The zero value means the last five minutes.
type Options struct {
	Window   time.Duration // 5 minutes
	At       time.Time     // end of the window; now
	Workload string        // only this one; empty means all
	Timeout  time.Duration // of all queries together; 30 s
	PerQuery time.Duration // of one; 10 s
	// MaxWorkloads is the largest number of workloads, and MaxSamples that of samples per query; 1,000 and 50,000. What
	// exceeds them is a [Problem].
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

// Result holds the findings of one evaluation, and what could not be judged.
type Result struct {
	At        time.Time          `json:"at"`
	Window    time.Duration      `json:"-"`
	Findings  []analysis.Finding `json:"findings"` // by descending weight
	Problems  []query.Problem    `json:"problems"`
	Workloads int                `json:"workloads"` // that were judged
	Checked   []string           `json:"checked"`   // rules that judged at least one workload
	Skipped   []Skip             `json:"skipped"`   // rules that judged none

	blind          bool // nothing could be judged
	unknownRules   map[string]bool
	unknownTargets map[query.Target]bool
	uncertain      map[ruled]bool
}

// ruled is a target that a rule judged.
type ruled struct {
	rule   string
	target query.Target
}

// Knows reports whether an existing cause would have been found. The rule must have had its data, and these must have been
// accurate enough. The workload, if it still exists, must have existed for long enough.
func (r Result) Knows(rule, workload, instance string) bool {
	t := query.Target{Workload: workload, Instance: instance}
	return !r.blind && !r.unknownRules[rule] && !r.unknownTargets[t] && !r.uncertain[ruled{rule, t}]
}

// Skip is a rule that judged no workload.
type Skip struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// Evaluate runs each distinct query of the rules once and applies each rule to each workload. An error means that the
// arguments are invalid or the context ended. A query without an answer is a problem in the result.
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
		uncertain: judged.uncertain,
	}
	for _, rule := range judged.unanswered {
		result.unknownRules[rule] = true
	}
	for _, t := range slices.Concat(gaps, judged.gaps) {
		result.unknownTargets[t] = true
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
