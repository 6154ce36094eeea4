// SPDX-License-Identifier: Apache-2.0

// Package query queries any Prometheus through a [Source]. Each query has a time limit and a limit of series. Each
// sample belongs to a [Target].
//
// It does not depend on a metric, a rule or a database.
package query

import (
	"context"
	"fmt"
	"time"
)

// A Source answers PromQL. The embedded Prometheus and a client of the HTTP API implement it.
type Source interface {
	// Instant evaluates a query that returns a vector at one moment. It omits stale and NaN samples.
	Instant(ctx context.Context, query string, at time.Time) ([]Sample, error)
	// Range evaluates a query at start, start+step, ... up to and including end.
	Range(ctx context.Context, query string, start, end time.Time, step time.Duration) ([]Series, error)
}

// A Namer is a [Source] that knows which metrics it has. Not every source can list them cheaply.
type Namer interface {
	// Metrics returns the names of the metrics that have series with these labels, of any time. The selector is that of a
	// query, without a name; empty selects all series.
	Metrics(ctx context.Context, selector string) ([]string, error)
}

// A Sample is one element of a vector.
type Sample struct {
	Labels map[string]string
	Time   time.Time
	Value  float64
}

// A Series is one element of a matrix, its points in order of time.
type Series struct {
	Labels map[string]string
	Points []Point
}

// A Point is a value at a time.
type Point struct {
	Time  time.Time
	Value float64
}

// Values returns the values of points.
func Values(points []Point) []float64 {
	x := make([]float64, len(points))
	for i, p := range points {
		x[i] = p.Value
	}
	return x
}

// Duration formats a time range for PromQL, which has no fractions: 5m, 90s, 1500ms.
func Duration(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}

// Stretches splits points at gaps.
func Stretches(points []Point, step time.Duration) [][]Point {
	var parts [][]Point
	from := 0
	for i := range points {
		if last := i == len(points)-1; last || points[i+1].Time.Sub(points[i].Time) > step*3/2 {
			parts = append(parts, points[from:i+1])
			from = i + 1
		}
	}
	return parts
}
