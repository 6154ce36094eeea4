// SPDX-License-Identifier: Apache-2.0

// Package engine evaluates diagnosis rules on stored series: it asks each query once, lets each rule look at each
// workload, and ranks the findings.
//
// It refuses to know a rule, a collector, an eBPF program or a database.
package engine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
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

	blind         bool // nothing could be judged
	unknownRules  map[string]bool
	unknownPlaces map[query.Target]bool
}

// Knows tells whether a cause would have been found if it were there: the rule had its data and the workload, if it
// still exists, was there for long enough.
func (r Result) Knows(rule, workload, instance string) bool {
	return !r.blind && !r.unknownRules[rule] && !r.unknownPlaces[query.Target{Workload: workload, Instance: instance}]
}

// Skip is a rule that was not asked about any workload.
type Skip struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// answer is what a source said to one query.
type answer struct {
	samples []query.Sample
	err     error
	kind    query.Kind // of the problem, empty when there is none
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
	e := &evaluation{
		Options: o, ctx: ctx, source: source,
		answers: make(map[string]answer), index: make(map[string]map[query.Target][]query.Sample), hosts: make(map[string][]query.Target),
		judged: make(map[query.Target]bool), there: make(map[query.Target]presence),
		result: Result{At: o.At, Window: o.Window, Findings: []analysis.Finding{}, Problems: []query.Problem{}, Checked: []string{}, Skipped: []Skip{},
			unknownRules: make(map[string]bool), unknownPlaces: make(map[query.Target]bool)},
	}
	e.machine()
	e.sampling()
	e.pulse()
	e.ask(rules)
	e.find()
	if err := outer.Err(); err != nil {
		return Result{}, fmt.Errorf("analysing the %s before %s: %w", query.Duration(o.Window), o.At.UTC().Format(time.RFC3339), err)
	}
	for _, rule := range rules {
		e.judge(rule)
	}
	e.result.Workloads, e.result.blind = len(e.judged), e.blind != ""
	e.result.Findings = e.rank()
	return e.result, nil
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

// evaluation is one call of [Evaluate].
type evaluation struct {
	Options
	ctx    context.Context
	source query.Source
	result Result

	answers map[string]answer                          // by query
	index   map[string]map[query.Target][]query.Sample // the same by query and whom they are of
	hosts   map[string][]query.Target                  // machines in an answer, by query
	places  []query.Target                             // workloads to be judged
	judged  map[query.Target]bool                      // workloads that a rule looked at
	there   map[query.Target]presence                  // workloads in the window
	blind   string                                     // why nothing can be judged, empty when it can
	clocks  map[string]cost.Clock                      // by instance
	ocalls  map[string]cost.Cost                       // by instance, of those that say what one costs there
	stepped map[string]bool                            // instances whose clock was set within the window
	drafts  []draft                                    // what rules said

	variance  map[string]map[query.Target]float64 // of numbers of events in the window, by their family
	uncounted map[string]bool                     // instances whose frequent events were not counted
}

func (e *evaluation) query(s Signal) string {
	return strings.ReplaceAll(s.Query, "$window", query.Duration(e.Window))
}

// ask asks each query once.
func (e *evaluation) ask(rules []Rule) {
	needs := make(map[string][]string)
	var queries []string
	for _, r := range rules {
		for _, s := range r.Signals {
			q := e.query(s)
			if needs[q] == nil {
				queries = append(queries, q)
			}
			if !slices.Contains(needs[q], r.Name) {
				needs[q] = append(needs[q], r.Name)
			}
		}
	}
	e.noteUncounted(needs)
	for _, q := range queries {
		a := e.instant(q)
		e.answers[q], e.index[q] = a, query.ByTarget(a.samples)
		e.hosts[q] = query.Machines(e.index[q])
		if a.kind != "" {
			e.problem(query.Problem{Kind: a.kind, Query: q, Error: a.err.Error(), Rules: needs[q]})
		}
	}
}

// instant asks one query and drops samples that are not finite.
func (e *evaluation) instant(expr string) answer {
	samples, kind, err := e.limits().Instant(e.ctx, e.source, expr, e.At)
	if kind != "" {
		return answer{kind: kind, err: err}
	}
	kept := make([]query.Sample, 0, len(samples))
	for _, s := range samples {
		if !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			kept = append(kept, s)
		}
	}
	if len(kept) == 0 {
		return answer{kind: query.Absent, err: fmt.Errorf("no samples")}
	}
	return answer{samples: kept}
}

func (e *evaluation) problem(p query.Problem) { e.result.Problems = append(e.result.Problems, p) }
