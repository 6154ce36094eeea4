// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	engine "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/teescope/teescope/internal/lib/promql"
)

const (
	// namesFor is the time for which the names of metrics are used, if no series is added or removed.
	namesFor = time.Second
	// mostParsed bounds the parsed queries. The shipped rules have a tenth of it. Templates of alerts can make queries with values.
	mostParsed = 1000
)

// ruleQueries runs the queries of rules. A query that has no samples, because the database does not have its metrics, is not
// run: most shipped rules are about TEEs that a machine does not have.
type ruleQueries struct {
	db  *tsdb.DB
	run rules.QueryFunc

	mu     sync.Mutex
	parsed map[string]promql.Query
	names  map[string]bool
	series uint64 // of the database when the names were read
	read   time.Time
}

// query implements rules.QueryFunc.
func (r *ruleQueries) query(ctx context.Context, text string, at time.Time) (engine.Vector, error) {
	if r.silent(ctx, text) {
		return engine.Vector{}, nil
	}
	return r.run(ctx, text, at)
}

func (r *ruleQueries) silent(ctx context.Context, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n, now := r.db.Head().NumSeries(), time.Now(); r.names == nil || n != r.series || now.Sub(r.read) >= namesFor {
		names, err := metricNames(ctx, r.db)
		if err != nil {
			return false // the query will show why
		}
		r.names, r.series, r.read = make(map[string]bool, len(names)), n, now
		for _, name := range names {
			r.names[name] = true
		}
	}
	q, known := r.parsed[text]
	if !known {
		if len(r.parsed) >= mostParsed {
			clear(r.parsed)
		}
		q, _ = promql.Parse(text) // what cannot be parsed is not silent
		r.parsed[text] = q
	}
	return q.Silent(func(metric string) bool { return r.names[metric] })
}

// metricNames returns the names of all metrics that have series with these labels, of any time.
func metricNames(ctx context.Context, db storage.Queryable, only ...*labels.Matcher) ([]string, error) {
	q, err := db.Querier(math.MinInt64, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	defer func() { _ = q.Close() }() // nothing is written
	names, _, err := q.LabelValues(ctx, model.MetricNameLabel, nil, only...)
	return names, err
}
