// SPDX-License-Identifier: Apache-2.0

// Package analysis names the bottleneck of a workload: it evaluates diagnosis rules on stored series, and keeps the
// findings that they yield.
//
// It reads any Prometheus through a [Source], so that it works on a live server, on a foreign one and on a file alike.
// It refuses to know a collector, an eBPF program or a database.
package analysis

import (
	"context"
	"time"
)

// A Source answers PromQL. Implementations live in other rooms: the embedded engine, and a client of the HTTP API.
type Source interface {
	// Instant evaluates a query that yields a vector at one moment. Stale and NaN samples are not returned.
	Instant(ctx context.Context, query string, at time.Time) ([]Sample, error)
	// Range evaluates a query at start, start+step, ... up to and with end.
	Range(ctx context.Context, query string, start, end time.Time, step time.Duration) ([]Series, error)
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
