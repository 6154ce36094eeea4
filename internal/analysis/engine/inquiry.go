// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/stat"
)

// An inquiry runs queries of an evaluation and collects the problems.
type inquiry struct {
	Options
	ctx      context.Context
	source   query.Source
	several  bool // the source is one of several machines
	bare     bool // of these it is the one of the workloads without an instance
	memo     *Memo
	metrics  map[string]bool // that the source has; nil is unknown
	asked    answers
	covering map[string]string // queries of rates whose samples are parts of those of another one, which is the value
	problems []query.Problem
}

// answer is the result of one query.
type answer struct {
	samples  []query.Sample
	err      error
	kind     query.Kind // of the problem; empty without one
	by       map[query.Target][]query.Sample
	machines []query.Target // in the answer
	frequent bool           // the query is about frequent events
	cut      bool           // some samples were not finite
}

func (q *inquiry) note(p query.Problem) { q.problems = append(q.problems, p) }

// expr returns a query for the window.
func (q *inquiry) expr(text string) string { return q.memo.over(text, q.Window, q.entire()) }

// over replaces the windows in the query of a signal.
func over(text string, window, whole time.Duration) string {
	return strings.NewReplacer("$window", query.Duration(window), "$whole", query.Duration(whole)).Replace(text)
}

// entire returns the window of the evaluation, also where a part of it is judged.
func (o Options) entire() time.Duration { return cmp.Or(o.whole, o.Window) }

// listMetrics reads which metrics the source has. Queries about others are not run: most machines have a small part of all
// metrics. A metric that is scraped for the first time meanwhile belongs to the next evaluation.
func (q *inquiry) listMetrics() {
	of, is := q.source.(query.Namer)
	if !is {
		return
	}
	ctx, cancel := context.WithTimeout(q.ctx, q.PerQuery)
	defer cancel()
	names, err := of.Metrics(ctx, "")
	if err != nil || len(names) == 0 {
		return // the queries will show why
	}
	q.metrics = make(map[string]bool, len(names))
	for _, name := range names {
		q.metrics[name] = true
	}
}

// silent reports whether a query has no samples, because the source does not have its metrics.
func (q *inquiry) silent(expr string) bool {
	return q.metrics != nil && q.memo.query(expr).Silent(func(metric string) bool { return q.metrics[metric] })
}

// over returns an inquiry about another window that ends at the same time, and about these targets. Its problems are its own.
func (q *inquiry) over(window time.Duration, targets []query.Target) *inquiry {
	shorter := *q
	shorter.whole, shorter.Window, shorter.problems = q.entire(), window, nil
	shorter.source = ofWorkloads(q.source, q.memo, targets)
	shorter.asked, shorter.covering = make(answers), nil
	return &shorter
}

// instant returns the answer to a query. Each is run once. Rates are added up from those of a finer query, if rules need both.
func (q *inquiry) instant(expr string) answer {
	a, known := q.asked[expr]
	if known {
		return a
	}
	derived := false
	if finer := q.covering[expr]; finer != "" {
		a, derived = q.sumOf(expr, finer, q.instant(finer))
	}
	if !derived {
		a = q.run(expr)
	}
	q.asked[expr] = a
	return a
}

// run runs one query and drops samples that are not finite.
func (q *inquiry) run(expr string) answer {
	if q.silent(expr) {
		return noSamples()
	}
	samples, kind, err := q.limits().Instant(q.ctx, q.source, expr, q.At)
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
		a := noSamples()
		a.cut = len(samples) > 0
		return a
	}
	return answerOf(kept, len(kept) < len(samples))
}

func answerOf(samples []query.Sample, cut bool) answer {
	by := query.ByTarget(samples)
	return answer{samples: samples, by: by, machines: query.Machines(by), cut: cut}
}

// sumOf adds up the answer to a query of rates from that to a finer query. It returns false if the finer answer does not show it.
func (q *inquiry) sumOf(expr, finer string, parts answer) (a answer, ok bool) {
	switch {
	case parts.kind == query.Absent && !parts.cut:
		return noSamples(), true
	case parts.kind != "" || parts.cut:
		return answer{}, false
	}
	r, _ := q.memo.ratesOf(expr)
	of, _ := q.memo.ratesOf(finer)
	at := make(map[string]int)
	var sums []stat.Total
	var samples []query.Sample
	var key []byte
	for _, part := range parts.samples {
		if key, ok = r.Part(of, part.Labels, key[:0]); !ok {
			continue
		}
		i, known := at[string(key)]
		if !known {
			i = len(sums)
			at[string(key)] = i
			sums, samples = append(sums, stat.Total{}), append(samples, query.Sample{Labels: r.Labels(part.Labels), Time: part.Time})
		}
		sums[i].Add(part.Value)
	}
	if len(samples) == 0 {
		return noSamples(), true
	}
	for i := range samples {
		samples[i].Value = sums[i].Value()
	}
	return answerOf(samples, false), true
}

func noSamples() answer { return answer{kind: query.Absent, err: errors.New("no samples")} }

// own runs a query of the engine itself. An answer without samples is not a problem.
func (q *inquiry) own(text string) answer {
	expr := q.expr(text)
	a := q.instant(expr)
	if a.kind == query.Failed {
		q.note(query.Problem{Kind: query.Failed, Query: expr, Error: a.err.Error()})
	}
	return a
}

// ranged runs a range query of the engine itself over the window. It returns false when the query failed.
func (q *inquiry) ranged(expr string, step time.Duration) (series []query.Series, ok bool) {
	if q.silent(expr) {
		return nil, true
	}
	series, kind, err := q.limits().Range(q.ctx, q.source, expr, q.At.Add(step-q.Window), q.At, step)
	switch kind {
	case query.Failed:
		q.note(query.Problem{Kind: kind, Query: expr, Error: err.Error()})
		return nil, false
	case query.Bounded:
		return series[:q.MaxSamples], true
	}
	return series, true
}

// answers holds the results of the rules' queries, by query.
type answers map[string]answer

// needs holds the queries of the rules in order, and the rules that need each.
type needs struct {
	queries  []string
	rules    map[string][]string
	frequent map[string]bool // queries about frequent events
}

func needsOf(q *inquiry, rules []Rule) needs {
	n := needs{rules: make(map[string][]string), frequent: make(map[string]bool)}
	seen := make(map[string]map[string]bool)
	for _, r := range rules {
		for _, s := range r.Signals {
			expr := q.expr(s.Query)
			if seen[expr] == nil {
				seen[expr] = make(map[string]bool)
				n.queries = append(n.queries, expr)
				n.frequent[expr] = asksFrequent(s.Query)
			}
			if !seen[expr][r.Name] {
				seen[expr][r.Name] = true
				n.rules[expr] = append(n.rules[expr], r.Name)
			}
		}
	}
	return n
}

// cover finds the queries of rates that need not be run, because another one of these queries is finer.
func (q *inquiry) cover(queries []string) {
	type selected struct {
		metric string
		over   time.Duration
	}
	by := make(map[selected][]string)
	q.covering = make(map[string]string)
	for _, expr := range queries {
		if r, ok := q.memo.ratesOf(expr); ok {
			of := selected{r.Metric, r.Over}
			by[of] = append(by[of], expr)
		}
	}
	for _, same := range by {
		for _, expr := range same {
			r, _ := q.memo.ratesOf(expr)
			for _, finer := range same {
				of, _ := q.memo.ratesOf(finer)
				if finer != expr && q.covering[finer] == "" && of.Covers(r) {
					q.covering[expr] = finer
					break
				}
			}
		}
	}
}

// askAll runs each query once.
func askAll(q *inquiry, n needs) answers {
	q.cover(n.queries)
	all := make(answers, len(n.queries))
	for _, expr := range n.queries {
		a := q.instant(expr)
		a.frequent = n.frequent[expr]
		all[expr] = a
		if a.kind != "" {
			q.note(query.Problem{Kind: a.kind, Query: expr, Error: a.err.Error(), Rules: n.rules[expr]})
		}
	}
	return all
}
