// SPDX-License-Identifier: Apache-2.0

// Package querytest is a query.Source of made series, for tests of what reads one.
package querytest

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
)

// Canned is a source of invented series. A query gets the series of the first entry whose key it contains.
type Canned struct {
	Value    map[string]func(at time.Time) map[string]float64 // by a part of the query; the function returns values by workload, with "" for the machine
	Instants map[string][]query.Sample
	Ranges   map[string][]query.Series
	Fails    map[string]error
	Asked    []string
}

func (c *Canned) failure(query string) error {
	c.Asked = append(c.Asked, query)
	for key, err := range c.Fails {
		if strings.Contains(query, key) {
			return err
		}
	}
	return nil
}

// Instant implements query.Source.
func (c *Canned) Instant(_ context.Context, query string, _ time.Time) ([]query.Sample, error) {
	if err := c.failure(query); err != nil {
		return nil, err
	}
	for key, samples := range c.Instants {
		if strings.Contains(query, key) {
			return samples, nil
		}
	}
	return nil, nil
}

// Range implements query.Source.
func (c *Canned) Range(_ context.Context, expr string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	if err := c.failure(expr); err != nil {
		return nil, err
	}
	for key, series := range c.Ranges {
		if strings.Contains(expr, key) {
			return series, nil
		}
	}
	by := make(map[string]*query.Series)
	for _, key := range slices.Sorted(maps.Keys(c.Value)) {
		if !strings.Contains(expr, key) {
			continue
		}
		for at := start; !at.After(end); at = at.Add(step) {
			for workload, v := range c.Value[key](at) {
				if by[workload] == nil {
					by[workload] = &query.Series{Labels: map[string]string{"instance": "here"}}
					if workload != "" {
						by[workload].Labels["workload"] = workload
					}
				}
				by[workload].Points = append(by[workload].Points, query.Point{Time: at, Value: v})
			}
		}
		break
	}
	var all []query.Series
	for _, workload := range slices.Sorted(maps.Keys(by)) {
		all = append(all, *by[workload])
	}
	return all, nil
}

// Noon is the time of the invented series.
var Noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Scraped says that a scrape comes every five seconds.
func Scraped() map[string][]query.Sample {
	return map[string][]query.Sample{"teescope_build_info": {{Value: 60}}}
}

// Noisy returns a value with noise. The noise depends only on the time.
func Noisy(at time.Time, level float64) float64 {
	r := rand.New(rand.NewPCG(uint64(at.UnixMilli()), 42))
	return level * (1 + 0.05*r.NormFloat64())
}
