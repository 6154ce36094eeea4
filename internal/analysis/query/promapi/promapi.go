// SPDX-License-Identifier: Apache-2.0

// Package promapi reads any Prometheus-compatible server through its HTTP API, as an [query.Source].
//
// It only reads. Every answer is bounded in bytes and every request in time. It does not depend on a metric or hold a
// database. The API is documented at https://prometheus.io/docs/prometheus/latest/querying/api/.
package promapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/remote"
	"github.com/teescope/teescope/internal/lib/text"
)

const (
	// maxAnswer is the maximum size of one answer, in bytes. A vector of 100,000 samples takes about 16 MB.
	maxAnswer = 32 << 20
	// maxWarnings is the maximum number of different warnings that are kept.
	maxWarnings = 20
)

// Source is a remote Prometheus. It is safe for concurrent use.
type Source struct {
	server *remote.Server
	api    v1.API

	mu       sync.Mutex
	warnings []string
}

// New returns a source for a server. It sends no request.
func New(s *remote.Server) (*Source, error) {
	client, err := api.NewClient(api.Config{Address: s.URL(""), Client: clientOf(s)})
	if err != nil {
		return nil, fmt.Errorf("querying %s: %w", s.Target(), err)
	}
	return &Source{server: s, api: v1.NewAPI(client)}, nil
}

// Target returns the server's name for display.
func (s *Source) Target() string { return s.server.Target() }

// Warnings returns the server's warnings, each once, for example that an answer is incomplete.
func (s *Source) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.warnings)
}

func (s *Source) note(warnings []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range warnings {
		w = text.Terminal(w)
		if len(s.warnings) < maxWarnings && !slices.Contains(s.warnings, w) {
			s.warnings = append(s.warnings, w)
		}
	}
}

// Check sends a request that every Prometheus answers. The error describes what was found instead, and what to do.
func (s *Source) Check(ctx context.Context) error {
	got, err := s.Instant(ctx, "vector(1)", time.Now())
	if err != nil {
		return err
	}
	if len(got) != 1 || got[0].Value != 1 {
		return &notPrometheusError{Target: s.Target(), What: fmt.Sprintf("the query vector(1) returns %d samples", len(got))}
	}
	return nil
}

// portably runs a query, and again without functions that the server does not know.
func portably(expr string, run func(expr string) (model.Value, v1.Warnings, error)) (model.Value, v1.Warnings, error) {
	v, warnings, err := run(expr)
	var said *v1.Error
	if errors.As(err, &said) {
		if portable, ok := promql.WithoutNative(expr, said.Msg+said.Detail); ok {
			return run(portable)
		}
	}
	return v, warnings, err
}

// Instant implements [query.Source].
func (s *Source) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	v, warnings, err := portably(expr, func(expr string) (model.Value, v1.Warnings, error) {
		return s.api.Query(ctx, expr, at, v1.WithTimeout(s.server.Within()))
	})
	s.note(warnings)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	vector, ok := v.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("the result of the query is a %s, not a vector: %s", v.Type(), expr)
	}
	samples := make([]query.Sample, 0, len(vector))
	for _, e := range vector {
		if e.Histogram == nil && !math.IsNaN(float64(e.Value)) {
			samples = append(samples, query.Sample{Labels: labelsOf(e.Metric), Time: e.Timestamp.Time(), Value: float64(e.Value)})
		}
	}
	return samples, nil
}

// Range implements [query.Source].
func (s *Source) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	v, warnings, err := portably(expr, func(expr string) (model.Value, v1.Warnings, error) {
		return s.api.QueryRange(ctx, expr, v1.Range{Start: start, End: end, Step: step}, v1.WithTimeout(s.server.Within()))
	})
	s.note(warnings)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	matrix, ok := v.(model.Matrix)
	if !ok {
		return nil, fmt.Errorf("the result of the query is a %s, not a matrix: %s", v.Type(), expr)
	}
	series := make([]query.Series, 0, len(matrix))
	for _, e := range matrix {
		points := make([]query.Point, 0, len(e.Values))
		for _, p := range e.Values {
			if !math.IsNaN(float64(p.Value)) {
				points = append(points, query.Point{Time: p.Timestamp.Time(), Value: float64(p.Value)})
			}
		}
		if len(points) > 0 {
			series = append(series, query.Series{Labels: labelsOf(e.Metric), Points: points})
		}
	}
	return series, nil
}

// LabelNames returns the names of the labels of all series that match a selector and have a sample shortly before a time. A
// server may add names of older series.
func (s *Source) LabelNames(ctx context.Context, match string, at time.Time) ([]string, error) {
	names, warnings, err := s.api.LabelNames(ctx, []string{match}, at.Add(-5*time.Minute), at, v1.WithTimeout(s.server.Within()))
	s.note(warnings)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = string(n)
	}
	return all, nil
}

// labelsOf copies labels. Exporters choose their values, which may be shown on a terminal.
func labelsOf(m model.Metric) map[string]string {
	labels := make(map[string]string, len(m))
	for name, value := range m {
		labels[string(name)] = string(value)
	}
	return labels
}
