// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/teescope/teescope/internal/server/prom/bound"
)

const (
	// maxQueryBytes is the memory that a query may take besides its samples. With a memory limit it is a share of that.
	maxQueryBytes = 512 << 20
	// chunkSamples is the number of samples in a chunk, and chunkBytes the memory that a query needs to describe a chunk.
	chunkSamples = 120
	chunkBytes   = 40
	// listedBytes is the size of a series in a list, without its labels. These exist three times: as labels, as text, and as
	// the buffer of the text, which grows.
	listedBytes = 64
	copies      = 3
)

// boundedEngine refuses queries that could take too much memory or time, before they are evaluated or while they select
// series. All queries pass it: of clients, of rules and their templates, and of the analysis.
type boundedEngine struct {
	promql.QueryEngine
	limits bound.Limits
	most   int // samples
	bytes  float64
}

// NewInstantQuery implements promql.QueryEngine.
func (e *boundedEngine) NewInstantQuery(ctx context.Context, q storage.Queryable, opts promql.QueryOpts, expr string, at time.Time) (promql.Query, error) {
	return e.bound(q, expr, func(q storage.Queryable) (promql.Query, error) {
		return e.QueryEngine.NewInstantQuery(ctx, q, opts, expr, at)
	})
}

// NewRangeQuery implements promql.QueryEngine.
func (e *boundedEngine) NewRangeQuery(ctx context.Context, q storage.Queryable, opts promql.QueryOpts, expr string, start, end time.Time, step time.Duration) (promql.Query, error) {
	return e.bound(q, expr, func(q storage.Queryable) (promql.Query, error) {
		return e.QueryEngine.NewRangeQuery(ctx, q, opts, expr, start, end, step)
	})
}

func (e *boundedEngine) bound(from storage.Queryable, expr string, prepare func(storage.Queryable) (promql.Query, error)) (promql.Query, error) {
	if err := bound.Text(expr); err != nil {
		return nil, err
	}
	if listed, ok := from.(*boundedStorage); ok {
		from = listed.Storage // this query has its own limit
	}
	b := &queryLimit{most: float64(e.most), bytes: e.bytes, interval: e.limits.Step.Milliseconds()}
	q, err := prepare(&limitedStorage{from, b})
	if err != nil {
		return nil, err
	}
	if stmt, ok := q.Statement().(*parser.EvalStmt); ok {
		b.cost, err = bound.Query(stmt, e.limits)
	}
	if err == nil {
		err = b.check()
	}
	if err != nil {
		q.Close()
		return nil, err
	}
	return boundedQuery{q}, nil
}

// boundedQuery returns the reason for a cancellation instead of the cancellation.
type boundedQuery struct{ promql.Query }

// Exec implements promql.Query.
func (q boundedQuery) Exec(ctx context.Context) *promql.Result {
	r := q.Query.Exec(ctx)
	var memory *memoryError
	if r.Err != nil && errors.As(context.Cause(ctx), &memory) {
		return &promql.Result{Err: memory, Warnings: r.Warnings}
	}
	return r
}

// queryLimit is the memory that one query may take. Prometheus uses it from one goroutine at a time.
type queryLimit struct {
	cost     bound.Cost
	read     bound.Read
	most     float64 // samples
	bytes    float64
	interval int64 // between two samples, in milliseconds
	selected int   // selectors whose series were selected
}

func (b *queryLimit) check() error {
	needs := b.cost.Bytes(b.read, b.most)
	if needs <= b.bytes {
		return nil
	}
	return fmt.Errorf("the query may take %.0f MiB of memory after %.0f series, and may take %.0f MiB: "+
		"select fewer series, a shorter time range or fewer points, and avoid count_values, label_join, label_replace and topk by many labels",
		math.Ceil(needs/(1<<20)), b.read.Series, b.bytes/(1<<20))
}

// limitedStorage creates queriers within a limit.
type limitedStorage struct {
	storage.Queryable
	limit *queryLimit
}

// Querier implements storage.Queryable.
func (b *limitedStorage) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := b.Queryable.Querier(mint, maxt)
	if err != nil {
		return nil, err
	}
	b.limit.read, b.limit.selected = bound.Read{}, 0
	return &limitedQuerier{q, b.limit, mint, maxt}, nil
}

type limitedQuerier struct {
	storage.Querier
	limit      *queryLimit
	mint, maxt int64
}

// Select implements storage.Querier.
func (q *limitedQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	from, to := q.mint, q.maxt
	if hints != nil {
		from, to = max(from, hints.Start), min(to, hints.End)
	}
	set := &limitedSet{SeriesSet: q.Querier.Select(ctx, sorted, hints, matchers...), limit: q.limit}
	set.chunks = chunkBytes * float64(max(0, to-from)/max(1, q.limit.interval*chunkSamples)+1)
	if n := q.limit.selected; n < len(q.limit.cost.Selectors) {
		set.rows = q.limit.cost.Selectors[n]
	}
	q.limit.selected++
	if set.rows.Grouped {
		set.groups = map[uint64]struct{}{}
	}
	return set
}

// limitedSet ends with an error when the limit is exceeded.
type limitedSet struct {
	storage.SeriesSet
	limit  *queryLimit
	rows   bound.Selector
	groups map[uint64]struct{}
	buffer []byte
	chunks float64 // bytes for the chunks of a series
	err    error
}

// Next implements storage.SeriesSet.
func (s *limitedSet) Next() bool {
	if s.err != nil || !s.SeriesSet.Next() {
		return false
	}
	ls := s.At().Labels()
	r := &s.limit.read
	r.Series++
	r.Chunks += s.chunks
	bytes, longest := size(ls)
	r.Labels, r.Longest = r.Labels+bytes, r.Longest+longest
	if s.rows.Wide {
		r.Rows++
	}
	if s.groups != nil {
		var key uint64
		key, s.buffer = ls.HashForLabels(s.buffer, s.rows.By...)
		if _, seen := s.groups[key]; !seen {
			s.groups[key] = struct{}{}
			r.Rows++
		}
	}
	s.err = s.limit.check()
	return s.err == nil
}

// Err implements storage.SeriesSet.
func (s *limitedSet) Err() error {
	if s.err != nil {
		return s.err
	}
	return s.SeriesSet.Err()
}

// size returns the bytes of all labels of a series, and those of the longest value.
func size(ls labels.Labels) (all, longest float64) {
	ls.Range(func(l labels.Label) {
		all += float64(len(l.Name) + len(l.Value) + 2)
		longest = max(longest, float64(len(l.Value)))
	})
	return all, longest
}

// boundedStorage is the database for requests that list series or labels. It limits the size of a list.
type boundedStorage struct {
	Storage storage.SampleAndChunkQueryable
	bytes   float64
}

// Querier implements storage.Queryable.
func (s *boundedStorage) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := s.Storage.Querier(mint, maxt)
	if err != nil {
		return nil, err
	}
	l := &list{bytes: s.bytes}
	return &listQuerier{listLabels{q, l}, q}, nil
}

// ChunkQuerier implements storage.ChunkQueryable.
func (s *boundedStorage) ChunkQuerier(mint, maxt int64) (storage.ChunkQuerier, error) {
	q, err := s.Storage.ChunkQuerier(mint, maxt)
	if err != nil {
		return nil, err
	}
	l := &list{bytes: s.bytes}
	return &listChunkQuerier{listLabels{q, l}, q}, nil
}

// list is the size of the list that a request makes.
type list struct{ bytes, listed float64 }

func (l *list) add(bytes float64) error {
	if l.listed += listedBytes + copies*bytes; l.listed > l.bytes {
		return fmt.Errorf("the answer may take more than %.0f MiB of memory: use narrower matchers, a shorter time range, or the parameter limit", l.bytes/(1<<20))
	}
	return nil
}

func (l *list) all(values []string) error {
	for _, v := range values {
		if err := l.add(float64(len(v))); err != nil {
			return err
		}
	}
	return nil
}

type listLabels struct {
	storage.LabelQuerier
	list *list
}

// LabelValues implements storage.LabelQuerier.
func (q listLabels) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	values, notes, err := q.LabelQuerier.LabelValues(ctx, name, hints, matchers...)
	if err == nil {
		err = q.list.all(values)
	}
	return values, notes, err
}

// LabelNames implements storage.LabelQuerier.
func (q listLabels) LabelNames(ctx context.Context, hints *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	names, notes, err := q.LabelQuerier.LabelNames(ctx, hints, matchers...)
	if err == nil {
		err = q.list.all(names)
	}
	return names, notes, err
}

type listQuerier struct {
	listLabels
	next storage.Querier
}

// Select implements storage.Querier.
func (q *listQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	return &listSet{SeriesSet: q.next.Select(ctx, sorted, hints, matchers...), ctx: ctx, list: q.list}
}

type listSet struct {
	storage.SeriesSet
	ctx  context.Context
	list *list
	err  error
}

// Next implements storage.SeriesSet.
func (s *listSet) Next() bool {
	if s.err != nil || !s.SeriesSet.Next() {
		return false
	}
	s.err = s.list.series(s.ctx, s.At().Labels())
	return s.err == nil
}

// Err implements storage.SeriesSet.
func (s *listSet) Err() error {
	if s.err != nil {
		return s.err
	}
	return s.SeriesSet.Err()
}

func (l *list) series(ctx context.Context, ls labels.Labels) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	bytes, _ := size(ls)
	return l.add(bytes)
}

type listChunkQuerier struct {
	listLabels
	next storage.ChunkQuerier
}

// Select implements storage.ChunkQuerier.
func (q *listChunkQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, matchers ...*labels.Matcher) storage.ChunkSeriesSet {
	return &listChunkSet{ChunkSeriesSet: q.next.Select(ctx, sorted, hints, matchers...), ctx: ctx}
}

// listChunkSet ends with the context of the request. The answer is a stream, so its size needs no limit.
type listChunkSet struct {
	storage.ChunkSeriesSet
	ctx context.Context
}

// Next implements storage.ChunkSeriesSet.
func (s *listChunkSet) Next() bool { return s.ctx.Err() == nil && s.ChunkSeriesSet.Next() }

// Err implements storage.ChunkSeriesSet.
func (s *listChunkSet) Err() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	return s.ChunkSeriesSet.Err()
}
