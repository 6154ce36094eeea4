// SPDX-License-Identifier: Apache-2.0

// Package bound computes an upper bound for the cost of a query from its syntax tree, before it is evaluated.
//
// Prometheus counts samples while it evaluates. It allocates for the steps of a subquery, for the labels that functions make
// and for the groups of topk before it counts, and a compiled regular expression is not counted at all. The package does not
// evaluate a query or depend on a metric.
package bound

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	// maxSteps is the maximum number of points in time at which all subqueries of a query are evaluated. Prometheus
	// allocates 16 bytes for each before it evaluates. 5-second steps over 15 days with one of 30 days are 780,000.
	maxSteps = 1_000_000
	// maxReads is how many samples of one series a query may read, where a sample in the windows of several steps counts
	// for each. Prometheus checks the time limit of a query between two series only. This many take about two seconds.
	maxReads = 500_000_000
)

// sorting is the cost of a sample in a function that sorts its window, as a multiple of the cost in a function that
// adds up its window.
const sorting = 32

// Limits are properties of the database that a query is evaluated on.
type Limits struct {
	// Step is the step of a subquery that names none, and about the time between two samples of a series.
	Step time.Duration
	// Kept is how long samples are kept.
	Kept time.Duration
}

// Query returns the cost of a query that Prometheus has prepared. The error says which limit the query exceeds, and what
// to do.
func Query(stmt *parser.EvalStmt, limits Limits) (Cost, error) {
	w := walker{limits: limits, cost: Cost{Points: 1}}
	if w.limits.Kept == 0 {
		w.limits.Kept = math.MaxInt64
	}
	at := place{span: stmt.End.Sub(stmt.Start), times: 1}
	if stmt.Interval > 0 {
		at.times = count(at.span, stmt.Interval)
	}
	// A step below a millisecond is zero for Prometheus, which divides by it.
	if stmt.Interval != 0 && stmt.Interval < time.Millisecond {
		return Cost{}, fmt.Errorf("the step is %s and must be at least 1ms", stmt.Interval)
	}
	made := w.visit(stmt.Expr, at)
	w.cost.include(made)
	if w.regexps > maxRegexp && w.err == nil {
		w.err = tooLargeRegexp(w.regexps)
	}
	if w.err == nil {
		w.err = w.cost.check()
	}
	return w.cost, w.err
}

// place describes how an expression in a query is evaluated: how many times, over which span, and with which rows.
type place struct {
	span  time.Duration
	times float64
	rows  Selector // of a selector at this place
}

func count(span, step time.Duration) float64 { return math.Floor(float64(span)/float64(step)) + 1 }

// walker adds up the costs of the nodes of an expression.
type walker struct {
	limits  Limits
	steps   float64
	regexps float64
	cost    Cost
	err     error // the first
}

func (w *walker) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// visit adds the cost of an expression, and returns the labels that it makes.
func (w *walker) visit(node parser.Node, at place) made {
	w.cost.Points = max(w.cost.Points, at.times)
	switch n := node.(type) {
	case *parser.StepInvariantExpr:
		return w.visit(n.Expr, place{times: 1, rows: at.rows}) // Prometheus evaluates it once
	case *parser.SubqueryExpr:
		return w.visit(n.Expr, w.subquery(n, at))
	case *parser.VectorSelector:
		w.cost.Selectors = append(w.cost.Selectors, at.rows)
	case *parser.AggregateExpr:
		at.rows = w.aggregate(n)
	case *parser.BinaryExpr:
		at.rows.Wide = true
	case *parser.Call:
		return w.call(n, at)
	}
	all := made{}
	for child := range parser.ChildrenIter(node) {
		all.merge(w.visit(child, at))
	}
	return all
}

// subquery returns where the expression of a subquery is evaluated. Prometheus does so once for all steps around it.
func (w *walker) subquery(n *parser.SubqueryExpr, at place) place {
	step := w.step(n)
	inner := place{span: at.span + n.Range, rows: at.rows}
	if inner.span < at.span {
		inner.span = math.MaxInt64 // more than 292 years
	}
	inner.times = count(inner.span, step)
	if w.steps += inner.times; w.steps > maxSteps {
		w.fail("the subquery %s needs %.0f steps, and all subqueries of a query together may need %d: "+
			"use a larger step than %s, or a shorter range", suffix(n), w.steps, maxSteps, model.Duration(step))
	}
	return inner
}

// step returns the step of a subquery.
func (w *walker) step(n *parser.SubqueryExpr) time.Duration {
	step := n.Step
	if step == 0 {
		step = w.limits.Step
	}
	if step < time.Millisecond {
		w.fail("the step of the subquery %s is %s and must be at least 1ms", suffix(n), step)
		return time.Millisecond
	}
	return step
}

// suffix returns the range and the step of a subquery, as written.
func suffix(n *parser.SubqueryExpr) string {
	short := *n
	short.Offset, short.OriginalOffset, short.Timestamp, short.StartOrEnd = 0, 0, nil, 0
	return short.ShortString()
}

// aggregate adds the cost of an aggregation, and returns the rows of selectors in it.
func (w *walker) aggregate(n *parser.AggregateExpr) Selector {
	grouped := len(n.Grouping) > 0 || n.Without
	switch n.Op {
	case parser.COUNT_VALUES:
		w.cost.Split = true
		return Selector{Wide: true}
	case parser.TOPK, parser.BOTTOMK, parser.LIMITK:
		if grouped {
			w.cost.Heap = max(w.cost.Heap, number(n.Param))
		}
		return Selector{Wide: true}
	case parser.LIMIT_RATIO:
		return Selector{Wide: true}
	}
	if n.Without {
		return Selector{Wide: true}
	}
	return Selector{Grouped: true, By: slices.Sorted(slices.Values(n.Grouping))}
}

// number returns the value of a number, and infinity for an expression.
func number(e parser.Expr) float64 {
	if n, ok := plain(e).(*parser.NumberLiteral); ok {
		return max(0, n.Val)
	}
	return math.Inf(1)
}

func (w *walker) call(n *parser.Call, at place) made {
	w.cost.Made++
	within := at
	within.rows.Wide = !ranges(n) // also for a function that makes labels, by which an aggregation above may group
	all := made{}
	for _, arg := range n.Args {
		all.merge(w.visit(arg, within))
	}
	for _, arg := range n.Args {
		switch a := plain(arg).(type) {
		case *parser.MatrixSelector:
			w.reads(n, at, min(a.Range, w.limits.Kept), w.limits.Step)
		case *parser.SubqueryExpr:
			w.reads(n, at, a.Range, w.step(a))
		}
	}
	switch n.Func.Name {
	case "label_join":
		all.join(n.Args)
	case "label_replace":
		all.replace(n.Args)
		if len(n.Args) == 5 {
			w.regexps += regexpSize(text(n.Args[4]))
		}
	}
	w.cost.include(all)
	return all
}

// ranges reports whether a function reads windows. Prometheus then gives the unused space of a series with few points
// to the next series.
func ranges(n *parser.Call) bool {
	return slices.ContainsFunc(n.Args, func(arg parser.Expr) bool { return arg.Type() == parser.ValueTypeMatrix })
}

// reads checks the samples that a function reads in windows of a range.
func (w *walker) reads(n *parser.Call, at place, window, step time.Duration) {
	reads := at.times * count(window, step)
	switch n.Func.Name {
	case "quantile_over_time", "mad_over_time":
		reads *= sorting
	}
	if reads > maxReads {
		w.fail("%s over %s at %.0f steps costs as much as reading %.0f samples of each series, and the maximum for a query is %d: "+
			"use a shorter range, or fewer steps", n.Func.Name, model.Duration(window), at.times, reads, maxReads)
	}
}

// plain removes parts that do not change the value of an expression.
func plain(e parser.Expr) parser.Expr {
	for {
		switch n := e.(type) {
		case *parser.ParenExpr:
			e = n.Expr
		case *parser.StepInvariantExpr:
			e = n.Expr
		default:
			return e
		}
	}
}

// text returns a string argument.
func text(e parser.Expr) string {
	if s, ok := plain(e).(*parser.StringLiteral); ok {
		return s.Val
	}
	return ""
}
