// SPDX-License-Identifier: Apache-2.0

package query

import (
	"context"
	"fmt"
	"time"
)

// Limits bound one query.
type Limits struct {
	PerQuery time.Duration
	Series   int // of an answer; a larger answer is not used
}

// within runs a query with a time limit. It returns the kind of problem with the answer, or an empty kind.
func (l Limits) within(ctx context.Context, ask func(context.Context) (int, error)) (Kind, error) {
	ctx, cancel := context.WithTimeout(ctx, l.PerQuery)
	defer cancel()
	n, err := ask(ctx)
	if err == nil {
		err = ctx.Err() // a source that returns early without an error gave no answer
	}
	switch {
	case err != nil:
		return Failed, err
	case n > l.Series:
		return Bounded, fmt.Errorf("%d series, more than the limit of %d", n, l.Series)
	}
	return "", nil
}

// Instant queries a vector. The error belongs to the problem of this kind.
func (l Limits) Instant(ctx context.Context, source Source, expr string, at time.Time) (samples []Sample, kind Kind, err error) {
	kind, err = l.within(ctx, func(ctx context.Context) (n int, err error) {
		samples, err = source.Instant(ctx, expr, at)
		return len(samples), err
	})
	if kind != "" {
		samples = nil
	}
	return samples, kind, err
}

// Range queries a matrix. An answer with too many series is returned with the kind [Bounded].
func (l Limits) Range(ctx context.Context, source Source, expr string, start, end time.Time, step time.Duration) (series []Series, kind Kind, err error) {
	kind, err = l.within(ctx, func(ctx context.Context) (n int, err error) {
		series, err = source.Range(ctx, expr, start, end, step)
		return len(series), err
	})
	return series, kind, err
}

// mostSeries bounds the answers to an [Asker]: a machine has at most 1,024 workloads.
const mostSeries = 20_000

// An Asker runs one query after the other, collects the problems, and stops after [Patience] failures in a row.
type Asker struct {
	Problems []Problem

	ctx    context.Context
	source Source
	limits Limits
	failed int // failed queries in a row
}

// Patience is the number of queries in a row that may fail before an [Asker] stops.
const Patience = 2

// NewAsker returns an asker with this time limit for each query.
func NewAsker(ctx context.Context, source Source, perQuery time.Duration) *Asker {
	return &Asker{ctx: ctx, source: source, limits: Limits{PerQuery: perQuery, Series: mostSeries}}
}

// GaveUp reports whether the asker has stopped.
func (q *Asker) GaveUp() bool { return q.failed >= Patience }

// Note adds a problem.
func (q *Asker) Note(p Problem) { q.Problems = append(q.Problems, p) }

// answered records the outcome of a query and reports whether its answer can be used.
func (q *Asker) answered(expr string, kind Kind, err error) bool {
	switch kind {
	case "":
		q.failed = 0
		return true
	case Failed:
		q.failed++
		if q.failed == Patience || q.ctx.Err() != nil {
			err = fmt.Errorf("%w; no more queries are run this time", err)
		}
	}
	q.Note(Problem{Kind: kind, Query: expr, Error: err.Error()})
	return false
}

func (q *Asker) stopped() bool { return q.GaveUp() || q.ctx.Err() != nil }

// Range queries a matrix. It returns nil without a usable answer.
func (q *Asker) Range(expr string, start, end time.Time, step time.Duration) []Series {
	if q.stopped() {
		return nil
	}
	series, kind, err := q.limits.Range(q.ctx, q.source, expr, start, end, step)
	if !q.answered(expr, kind, err) {
		return nil
	}
	return series
}

// Instant queries a vector. It returns nil without a usable answer.
func (q *Asker) Instant(expr string, at time.Time) []Sample {
	if q.stopped() {
		return nil
	}
	samples, kind, err := q.limits.Instant(q.ctx, q.source, expr, at)
	if !q.answered(expr, kind, err) {
		return nil
	}
	return samples
}
