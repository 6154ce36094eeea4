// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
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

// Result is what one evaluation found, and what it could not look at.
type Result struct {
	At        time.Time     `json:"at"`
	Window    time.Duration `json:"-"`
	Findings  []Finding     `json:"findings"` // the most worthwhile first
	Problems  []Problem     `json:"problems"`
	Workloads int           `json:"workloads"` // that were judged
	Checked   []string      `json:"checked"`   // rules that looked at one workload at least
	Skipped   []Skip        `json:"skipped"`   // rules that looked at none

	blind         bool // nothing could be judged
	unknownRules  map[string]bool
	unknownPlaces map[place]bool
}

// Knows tells whether a cause would have been found if it were there: the rule had its data and the workload, if it
// still exists, was there for long enough.
func (r Result) Knows(rule, workload, instance string) bool {
	return !r.blind && !r.unknownRules[rule] && !r.unknownPlaces[place{workload, instance}]
}

// Skip is a rule that was not asked about any workload.
type Skip struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}

// answer is what a source said to one query.
type answer struct {
	samples []Sample
	err     error
	kind    Kind // of the problem, empty when there is none
}

// Evaluate asks each distinct query of the rules once and lets each rule look at each workload. The error is of what
// was asked for; what the source could not answer is in the result's problems.
func Evaluate(ctx context.Context, source Source, rules []Rule, options Options) (Result, error) {
	o := options.withDefaults()
	if err := check(rules); err != nil {
		return Result{}, err
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	e := &evaluation{
		Options: o, ctx: ctx, source: source,
		answers: make(map[string]answer), index: make(map[string]map[place][]Sample), hosts: make(map[string][]place),
		judged: make(map[place]bool), there: make(map[place]presence),
		result: Result{At: o.At, Window: o.Window, Findings: []Finding{}, Problems: []Problem{}, Checked: []string{}, Skipped: []Skip{},
			unknownRules: make(map[string]bool), unknownPlaces: make(map[place]bool)},
	}
	e.machine()
	e.sampling()
	e.pulse()
	e.ask(rules)
	e.find()
	if err := outer.Err(); err != nil {
		return Result{}, fmt.Errorf("analysing the %s before %s: %w", duration(o.Window), o.At.UTC().Format(time.RFC3339), err)
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
	source Source
	result Result

	answers map[string]answer             // by query
	index   map[string]map[place][]Sample // the same by query and whom they are of
	hosts   map[string][]place            // machines in an answer, by query
	places  []place                       // workloads to be judged
	judged  map[place]bool                // workloads that a rule looked at
	there   map[place]presence            // workloads in the window
	blind   string                        // why nothing can be judged, empty when it can
	clocks  map[string]Clock              // by instance
	ocalls  map[string]Cost               // by instance, of those that say what one costs there
	stepped map[string]bool               // instances whose clock was set within the window
	drafts  []draft                       // what rules said

	variance  map[string]map[place]float64 // of numbers of events in the window, by their family
	uncounted map[string]bool              // instances whose frequent events were not counted
}

func (e *evaluation) query(s Signal) string {
	return strings.ReplaceAll(s.Query, "$window", duration(e.Window))
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
		e.answers[q], e.index[q] = a, byPlace(a.samples)
		e.hosts[q] = hostsOf(e.index[q])
		if a.kind != "" {
			e.problem(Problem{Kind: a.kind, Query: q, Error: a.err.Error(), Rules: needs[q]})
		}
	}
}

// instant asks one query and drops what is no number.
func (e *evaluation) instant(query string) answer {
	ctx, cancel := context.WithTimeout(e.ctx, e.PerQuery)
	defer cancel()
	samples, err := e.source.Instant(ctx, query, e.At)
	if err == nil {
		err = ctx.Err() // a source that gives up quietly has not answered
	}
	if err != nil {
		return answer{err: err, kind: Failed}
	}
	if len(samples) > e.MaxSamples {
		return answer{kind: Bounded, err: fmt.Errorf("%d samples, more than %d are not looked at", len(samples), e.MaxSamples)}
	}
	kept := make([]Sample, 0, len(samples))
	for _, s := range samples {
		if !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			kept = append(kept, s)
		}
	}
	if len(kept) == 0 {
		return answer{kind: Absent, err: fmt.Errorf("no samples")}
	}
	return answer{samples: kept}
}

func (e *evaluation) problem(p Problem) { e.result.Problems = append(e.result.Problems, p) }
