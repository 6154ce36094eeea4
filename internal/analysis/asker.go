// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"fmt"
	"time"
)

// mostSeries bounds what one query may give: each machine has 1,024 workloads at most.
const mostSeries = 20_000

// An asker asks one query after the other, keeps what went wrong, and stops when asking does not help.
type asker struct {
	ctx      context.Context
	source   Source
	within   time.Duration
	failed   int // queries in a row
	problems []Problem
}

// patience is how many queries in a row may fail before nothing is asked any more.
const patience = 2

// newAsker asks a source, each query for so long at most.
func newAsker(ctx context.Context, source Source, perQuery time.Duration) *asker {
	return &asker{ctx: ctx, source: source, within: perQuery}
}

// gaveUp tells whether nothing is asked any more.
func (q *asker) gaveUp() bool { return q.failed >= patience }

func (q *asker) problem(p Problem) { q.problems = append(q.problems, p) }

// ask lets one query be asked, unless there is no point in it.
func (q *asker) ask(query string, ask func(context.Context) (int, error)) (asked bool) {
	if q.gaveUp() || q.ctx.Err() != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(q.ctx, q.within)
	defer cancel()
	n, err := ask(ctx)
	if err == nil {
		err = ctx.Err() // a source that gives up quietly has not answered
	}
	switch {
	case err == nil && n > mostSeries:
		q.problem(Problem{Kind: Bounded, Query: query, Error: fmt.Sprintf("%d series, more than %d are not looked at", n, mostSeries)})
		return false
	case err == nil:
		q.failed = 0
		return true
	}
	q.failed++
	text := err.Error()
	if q.failed == patience || q.ctx.Err() != nil {
		text += "; nothing more is asked this time"
	}
	q.problem(Problem{Kind: Failed, Query: query, Error: text})
	return false
}

func (q *asker) rangeOf(query string, start, end time.Time, step time.Duration) (series []Series) {
	asked := q.ask(query, func(ctx context.Context) (n int, err error) {
		series, err = q.source.Range(ctx, query, start, end, step)
		return len(series), err
	})
	if !asked {
		return nil
	}
	return series
}

func (q *asker) instant(query string, at time.Time) (samples []Sample) {
	asked := q.ask(query, func(ctx context.Context) (n int, err error) {
		samples, err = q.source.Instant(ctx, query, at)
		return len(samples), err
	})
	if !asked {
		return nil
	}
	return samples
}
