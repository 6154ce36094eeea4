// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// canned is a source of made series. A query has the series of the first entry of which the key is in it.
type canned struct {
	value    map[string]func(at time.Time) map[string]float64 // by what is in the query; by workload, "" is the machine
	instants map[string][]Sample
	ranges   map[string][]Series
	fails    map[string]error
	asked    []string
}

func (c *canned) failure(query string) error {
	c.asked = append(c.asked, query)
	for key, err := range c.fails {
		if strings.Contains(query, key) {
			return err
		}
	}
	return nil
}

func (c *canned) Instant(_ context.Context, query string, _ time.Time) ([]Sample, error) {
	if err := c.failure(query); err != nil {
		return nil, err
	}
	for key, samples := range c.instants {
		if strings.Contains(query, key) {
			return samples, nil
		}
	}
	return nil, nil
}

func (c *canned) Range(_ context.Context, query string, start, end time.Time, step time.Duration) ([]Series, error) {
	if err := c.failure(query); err != nil {
		return nil, err
	}
	for key, series := range c.ranges {
		if strings.Contains(query, key) {
			return series, nil
		}
	}
	by := make(map[string]*Series)
	for _, key := range slices.Sorted(maps.Keys(c.value)) {
		if !strings.Contains(query, key) {
			continue
		}
		for at := start; !at.After(end); at = at.Add(step) {
			for workload, v := range c.value[key](at) {
				if by[workload] == nil {
					by[workload] = &Series{Labels: map[string]string{"instance": "here"}}
					if workload != "" {
						by[workload].Labels["workload"] = workload
					}
				}
				by[workload].Points = append(by[workload].Points, Point{at, v})
			}
		}
		break
	}
	var all []Series
	for _, workload := range slices.Sorted(maps.Keys(by)) {
		all = append(all, *by[workload])
	}
	return all, nil
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// scraped is every five seconds.
func scraped() map[string][]Sample {
	return map[string][]Sample{"teescope_build_info": {{Value: 60}}}
}

// noisy is a value with noise that is the same whenever it is asked for.
func noisy(at time.Time, level float64) float64 {
	r := rand.New(rand.NewPCG(uint64(at.UnixMilli()), 42))
	return level * (1 + 0.05*r.NormFloat64())
}
