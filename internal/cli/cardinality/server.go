// SPDX-License-Identifier: Apache-2.0

package cardinality

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/common/model"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/query/promapi"
	"github.com/teescope/teescope/internal/lib/remote"
)

// maxLabels is the maximum number of labels of a database whose values are counted. Each needs two queries.
const maxLabels = 200

// database is what OfServer asks.
type database interface {
	query.Source
	LabelNames(ctx context.Context, match string, at time.Time) ([]string, error)
	Target() string
}

// OfServer counts the series that a Prometheus-compatible server has of a job at this time.
func OfServer(ctx context.Context, s *remote.Server, job string) (*Count, error) {
	db, err := promapi.New(s)
	if err != nil {
		return nil, err
	}
	if err := db.Check(ctx); err != nil {
		return nil, err
	}
	return ofDatabase(ctx, db, job, time.Now())
}

func ofDatabase(ctx context.Context, db database, job string, at time.Time) (*Count, error) {
	of := "job=" + strconv.Quote(job)
	byName, err := db.Instant(ctx, "count by (__name__) ({"+of+"})", at)
	if err != nil {
		return nil, err
	}
	if len(byName) == 0 {
		return nil, fmt.Errorf("%s has no series of the job %q: name the job of the agents with --job", db.Target(), job)
	}
	metrics := make(map[string]*Metric, len(byName))
	for _, s := range byName {
		name := s.Labels[model.MetricNameLabel]
		metrics[name] = &Metric{Name: name, Series: int(s.Value), Labels: map[string]int{}}
	}
	values, absent, err := countLabels(ctx, db, of, at, metrics)
	if err != nil {
		return nil, err
	}
	c := newCount(db.Target(), metrics, values)
	c.Absent = absent
	c.Machines = max(1, values[model.InstanceLabel])
	if values[byWorkload] > 0 {
		if c.Workloads, err = number(ctx, db, "count(count by (instance, workload) ({"+of+`,workload!=""}))`, at); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// countLabels counts the values of each label, in all metrics and in each.
func countLabels(ctx context.Context, db database, of string, at time.Time, metrics map[string]*Metric) (values map[string]int, absent []string, err error) {
	names, err := db.LabelNames(ctx, "{"+of+"}", at)
	if err != nil {
		return nil, nil, err
	}
	values = map[string]int{}
	for i, label := range names {
		if i == maxLabels {
			absent = append(absent, fmt.Sprintf("the values of %d more labels: %d are counted", len(names)-i, maxLabels))
			break
		}
		if label == model.MetricNameLabel {
			continue
		}
		if !model.LegacyValidation.IsValidLabelName(label) {
			absent = append(absent, fmt.Sprintf("the values of the label %q: its name cannot be written in older PromQL", label))
			continue
		}
		having := "{" + of + "," + label + `!=""}`
		n, err := number(ctx, db, "count(count by ("+label+") ("+having+"))", at)
		if err != nil {
			return nil, nil, err
		}
		if n == 0 {
			continue // in older series only
		}
		values[label] = n
		each, err := db.Instant(ctx, "count by (__name__) (count by (__name__, "+label+") ("+having+"))", at)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range each {
			if m := metrics[s.Labels[model.MetricNameLabel]]; m != nil { // a metric may be new since the first query
				m.Labels[label] = int(s.Value)
			}
		}
	}
	return values, absent, nil
}

// number returns the value of a query that has one sample, or 0 without a sample.
func number(ctx context.Context, db database, expr string, at time.Time) (int, error) {
	got, err := db.Instant(ctx, expr, at)
	if err != nil || len(got) == 0 {
		return 0, err
	}
	return int(got[0].Value), nil
}
