// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/teescope/teescope/internal/server/prom/bound"
)

// maxStored is the maximum number of samples in a [Store]. Each takes 16 bytes.
const maxStored = 10_000_000

// Store holds series in memory for PromQL queries. They come from a file or from a test.
type Store struct {
	series map[string]*memSeries            // by the bytes of their labels
	byName map[string]map[string]*memSeries // the same, by name
	n      int
	sorted bool
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{series: make(map[string]*memSeries), byName: make(map[string]map[string]*memSeries)}
}

// memSeries is one series of a store.
type memSeries struct {
	labels labels.Labels
	points []memPoint
}

// get returns the series with these labels. It creates the series if needed.
func (s *Store) get(ls labels.Labels) *memSeries {
	key := string(ls.Bytes(nil))
	m := s.series[key]
	if m == nil {
		m = &memSeries{labels: ls}
		name := ls.Get(model.MetricNameLabel)
		if s.byName[name] == nil {
			s.byName[name] = make(map[string]*memSeries)
		}
		s.series[key], s.byName[name][key] = m, m
	}
	return m
}

// add adds a sample; t is in milliseconds.
func (s *Store) add(m *memSeries, t int64, v float64) error {
	if s.n++; s.n > maxStored {
		return fmt.Errorf("more than %d samples: reduce it to the relevant time range or series", maxStored)
	}
	m.points = append(m.points, memPoint{t, v})
	s.sorted = false
	return nil
}

// sort sorts the samples of each series by time. Two different values at the same time are an error.
func (s *Store) sort() error {
	if s.sorted {
		return nil
	}
	for _, m := range s.series {
		slices.SortStableFunc(m.points, func(a, b memPoint) int { return cmp.Compare(a.t, b.t) })
		for i := 1; i < len(m.points); i++ {
			if a, b := m.points[i-1], m.points[i]; a.t == b.t && a.v != b.v {
				return fmt.Errorf("%s has two values at %s: %v and %v", m.labels, time.UnixMilli(a.t).UTC().Format(time.RFC3339Nano), a.v, b.v)
			}
		}
		m.points = slices.CompactFunc(m.points, func(a, b memPoint) bool { return a.t == b.t })
	}
	s.sorted = true
	return nil
}

// Bounds returns the times of the first and the last sample, or zero times for an empty store.
func (s *Store) Bounds() (first, last time.Time) {
	for _, m := range s.series {
		for _, p := range m.points {
			t := time.UnixMilli(p.t)
			if first.IsZero() || t.Before(first) {
				first = t
			}
			if last.IsZero() || t.After(last) {
				last = t
			}
		}
	}
	return first, last
}

// Source returns a source for PromQL queries. Nothing may be added afterwards.
func (s *Store) Source() (*Source, error) {
	if err := s.sort(); err != nil {
		return nil, err
	}
	step := 15 * time.Second
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: maxSamples, Timeout: queryTimeout, LookbackDelta: lookbackDelta,
		EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return step.Milliseconds() },
		Parser:                   parser.NewParser(parser.Options{}),
	})
	bounded := &boundedEngine{QueryEngine: engine, limits: bound.Limits{Step: step}, most: maxSamples, bytes: math.Inf(1)}
	return &Source{enter: func(ctx context.Context) (context.Context, promql.QueryEngine, storage.Queryable, func(), error) {
		return ctx, bounded, s, func() {}, nil
	}}, nil
}

// Querier implements storage.Queryable.
func (s *Store) Querier(mint, maxt int64) (storage.Querier, error) {
	return memQuerier{s, mint, maxt}, nil
}

// memQuerier reads the samples of a store within a range of time.
type memQuerier struct {
	*Store
	mint, maxt int64
}

// Select implements storage.Querier.
func (q memQuerier) Select(ctx context.Context, sorted bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	candidates := q.series
	for _, m := range matchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			candidates = q.byName[m.Value]
		}
	}
	set := &memSet{at: -1}
	for _, m := range candidates {
		if ctx.Err() != nil {
			return storage.ErrSeriesSet(ctx.Err())
		}
		if !m.matches(matchers) {
			continue
		}
		if points := m.between(q.mint, q.maxt); len(points) > 0 {
			set.series = append(set.series, &memSeries{m.labels, points})
		}
	}
	if sorted {
		slices.SortFunc(set.series, func(a, b *memSeries) int { return labels.Compare(a.labels, b.labels) })
	}
	return set
}

func (m *memSeries) matches(matchers []*labels.Matcher) bool {
	return !slices.ContainsFunc(matchers, func(x *labels.Matcher) bool { return !x.Matches(m.labels.Get(x.Name)) })
}

// between returns the points from mint to maxt, both inclusive.
func (m *memSeries) between(mint, maxt int64) []memPoint {
	at := func(t int64) int {
		i, _ := slices.BinarySearchFunc(m.points, t, func(p memPoint, t int64) int { return cmp.Compare(p.t, t) })
		return i
	}
	return m.points[at(mint):at(maxt+1)]
}

// LabelValues implements storage.Querier. [Source.Metrics] calls it for names of metrics, and PromQL never does.
func (q memQuerier) LabelValues(_ context.Context, _ string, _ *storage.LabelHints, matchers ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	var names []string
	for name, all := range q.byName {
		for _, m := range all {
			if m.matches(matchers) {
				names = append(names, name)
				break
			}
		}
	}
	return names, nil, nil
}

// LabelNames implements storage.Querier. PromQL never calls it.
func (memQuerier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

// Close implements storage.Querier.
func (memQuerier) Close() error { return nil }

// memSet implements storage.SeriesSet.
type memSet struct {
	series []*memSeries
	at     int
}

func (s *memSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *memSet) At() storage.Series                { return s.series[s.at] }
func (s *memSet) Err() error                        { return nil }
func (s *memSet) Warnings() annotations.Annotations { return nil }

// Labels implements storage.Series.
func (m *memSeries) Labels() labels.Labels { return m.labels }

// Iterator implements storage.Series.
func (m *memSeries) Iterator(chunkenc.Iterator) chunkenc.Iterator {
	return storage.NewListSeriesIterator(memPoints(m.points))
}

// memPoints implements storage.Samples.
type memPoints []memPoint

func (p memPoints) Get(i int) chunks.Sample { return &p[i] }
func (p memPoints) Len() int                { return len(p) }

// memPoint implements chunks.Sample.
type memPoint struct {
	t int64 // milliseconds
	v float64
}

func (p *memPoint) T() int64                      { return p.t }
func (p *memPoint) ST() int64                     { return 0 }
func (p *memPoint) F() float64                    { return p.v }
func (p *memPoint) H() *histogram.Histogram       { return nil }
func (p *memPoint) FH() *histogram.FloatHistogram { return nil }
func (p *memPoint) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (p *memPoint) Copy() chunks.Sample           { return &memPoint{p.t, p.v} }
