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

	"github.com/teescope/teescope/internal/analysis/query"
)

// Source answers PromQL for the analysis, from the embedded database or from a [Store]. It implements
// [query.Source].
type Source struct {
	// enter returns what to query, a context that ends when the query must give up, and a function to call afterwards.
	enter func(context.Context) (context.Context, promql.QueryEngine, storage.Queryable, func(), error)
}

// Source returns the embedded database as a source for queries of this process. Like the API, it does not answer before
// Init or while the memory limit is near.
func (s *Server) Source() *Source {
	return &Source{enter: func(ctx context.Context) (context.Context, promql.QueryEngine, storage.Queryable, func(), error) {
		next, end, reason := s.drainer.enter()
		if next == nil {
			return nil, nil, nil, nil, errors.New(reason)
		}
		if s.memory.near() {
			s.drainer.active.Done()
			return nil, nil, nil, nil, errors.New(s.memory.reason())
		}
		ctx, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(end, cancel)
		return ctx, s.engine, s.db, func() { stop(); cancel(); s.drainer.active.Done() }, nil
	}}
}

// While returns a source that answers only while a condition has no error. An analysis that sees nothing because nothing
// is stored would end all findings.
func (s *Source) While(condition func() error) *Source {
	return &Source{enter: func(ctx context.Context) (context.Context, promql.QueryEngine, storage.Queryable, func(), error) {
		if err := condition(); err != nil {
			return nil, nil, nil, nil, err
		}
		return s.enter(ctx)
	}}
}

// Metrics implements [query.Namer].
func (s *Source) Metrics(ctx context.Context, selector string) ([]string, error) {
	var only []*labels.Matcher
	if selector != "" {
		var err error
		if only, err = parser.NewParser(parser.Options{}).ParseMetricSelector(selector); err != nil {
			return nil, err
		}
	}
	ctx, _, db, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return metricNames(ctx, db, only...)
}

// Instant implements [query.Source].
func (s *Source) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	ctx, engine, db, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	q, err := engine.NewInstantQuery(ctx, db, nil, expr, at)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	r := q.Exec(ctx)
	if r.Err != nil {
		return nil, r.Err
	}
	switch v := r.Value.(type) {
	case promql.Vector:
		shared := query.LabelSetOf(ctx)
		samples := make([]query.Sample, 0, len(v))
		var key []byte
		for _, e := range v {
			if e.H == nil && !math.IsNaN(e.F) {
				if shared != nil {
					key = e.Metric.Bytes(key)
				}
				samples = append(samples, query.Sample{Labels: shared.Of(key, e.Metric.Map), Time: time.UnixMilli(e.T), Value: e.F})
			}
		}
		return samples, nil
	case promql.Scalar:
		return []query.Sample{{Labels: map[string]string{}, Time: time.UnixMilli(v.T), Value: v.V}}, nil
	}
	return nil, fmt.Errorf("the result of the query is a %s, not a vector", r.Value.Type())
}

// Range implements [query.Source].
func (s *Source) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	ctx, engine, db, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	q, err := engine.NewRangeQuery(ctx, db, nil, expr, start, end, step)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	r := q.Exec(ctx)
	if r.Err != nil {
		return nil, r.Err
	}
	m, err := r.Matrix()
	if err != nil {
		return nil, err
	}
	all := make([]query.Series, 0, len(m))
	for _, e := range m {
		series := query.Series{Labels: e.Metric.Map(), Points: make([]query.Point, 0, len(e.Floats))}
		for _, p := range e.Floats {
			if !math.IsNaN(p.F) {
				series.Points = append(series.Points, query.Point{Time: time.UnixMilli(p.T), Value: p.F})
			}
		}
		all = append(all, series)
	}
	return all, nil
}
