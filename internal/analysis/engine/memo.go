// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/promql"
)

// A Memo holds what parsing queries has shown, so that each is parsed once and not for each machine, figure and evaluation. It
// is for evaluations of the same rules and window, which bound it. It is safe for concurrent use.
type Memo struct{ narrowed, sums, rates, texts, parsed sync.Map }

// remember returns what find returned for this key.
func remember[K comparable, V any](known *sync.Map, key K, find func() V) V {
	if v, found := known.Load(key); found {
		return v.(V)
	}
	v := find()
	known.Store(key, v)
	return v
}

// anyValue stands for the value of a matcher. No label has it, because it is not UTF-8.
const anyValue = "\xff"

type text struct {
	text string
	err  error
}

// narrow is [promql.Narrow]. scope names the function of.
func (m *Memo) narrow(expr string, only []promql.Matcher, scope string, of func(metric string) bool) (string, error) {
	key := scope + anyValue + expr
	open := make([]promql.Matcher, len(only))
	for i, o := range only {
		key += anyValue + o.Label
		open[i] = promql.Matcher{Label: o.Label, Value: anyValue}
	}
	narrowed := remember(&m.narrowed, key, func() text {
		t, err := promql.Narrow(expr, open, of)
		return text{t, err}
	})
	filled := narrowed.text
	for _, o := range only {
		filled = fill(filled, o.Label, "="+strconv.Quote(o.Value))
	}
	return filled, narrowed.err
}

// fill replaces the matcher of a label with any value.
func fill(expr, label, matcher string) string {
	return strings.ReplaceAll(expr, label+"="+strconv.Quote(anyValue), label+matcher)
}

// sum is [promql.Sum] by workload and machine.
func (m *Memo) sum(expr string) string {
	return remember(&m.sums, expr, func() string { return promql.Sum(expr, "workload", "instance") })
}

// query returns a parsed query. One that cannot be parsed is never silent, and no label keeps it apart.
func (m *Memo) query(expr string) promql.Query {
	return remember(&m.parsed, expr, func() promql.Query {
		q, _ := promql.Parse(expr)
		return q
	})
}

// apart reports whether a query keeps workloads apart: see [promql.Query.Apart].
func (m *Memo) apart(expr string) bool { return m.query(expr).Apart("workload") }

type rates struct {
	promql.Rates
	ok bool
}

// ratesOf is [promql.RatesOf].
func (m *Memo) ratesOf(expr string) (promql.Rates, bool) {
	r := remember(&m.rates, expr, func() (r rates) {
		r.Rates, r.ok = promql.RatesOf(expr)
		return r
	})
	return r.Rates, r.ok
}

// over is [over].
func (m *Memo) over(text string, window, whole time.Duration) string {
	return remember(&m.texts, ranged{text, window, whole}, func() string { return over(text, window, whole) })
}

// ranged is a text with its windows.
type ranged struct {
	text          string
	window, whole time.Duration
}

// written holds the metrics of the queries of rules, for all analyses. The rules are part of the program, and the
// window is not filled in, so the number of entries is bounded.
var written sync.Map

// fewMinutes stands for windows in queries that are parsed and not run.
const fewMinutes = 5 * time.Minute

// metricsIn returns the metrics of a rule's query. The caller must not change them.
func metricsIn(text string) []string {
	return remember(&written, text, func() []string { return promql.Metrics(over(text, fewMinutes, fewMinutes)) })
}
