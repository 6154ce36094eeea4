// SPDX-License-Identifier: Apache-2.0

package window

import (
	"math"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
)

const (
	// mostCached bounds the values of a cache, of 8 bytes each: 128 workloads with 32 metrics at 64 times.
	mostCached = 1 << 18
	// settled is the time after which no scrape adds samples: twice the time limit of the last one, and its start.
	settled = 15 * time.Second
)

// A Cache keeps the observations of one machine for the next windows, which overlap: only new ones are queried. It is not safe
// for concurrent use. The zero value is empty.
type Cache struct {
	interval time.Duration
	by       map[string]*observed // by metric
}

// observed are the observations of a metric. Those that are absent are NaN.
type observed struct {
	first time.Time // of the first observation
	n     int       // number of observations
	upto  time.Time // end of the known ones
	by    map[query.Target][]float64
}

// observations returns the observations of a metric up to a moment, in the order of time and without gaps. With a cache, the
// moment must be a multiple of the interval.
func (c *Cache) observations(q *query.Asker, m Metric, at time.Time, o Options) map[query.Target][]float64 {
	known := &observed{first: at.Add(-o.Window + o.Interval), n: int(o.Window / o.Interval), by: make(map[query.Target][]float64)}
	known.upto = known.first.Add(-o.Interval)
	if c != nil {
		if c.interval != o.Interval {
			*c = Cache{interval: o.Interval, by: make(map[string]*observed)}
		}
		known.take(c.by[m.Name], o.Interval)
		delete(c.by, m.Name)
	}
	failed := len(q.Problems)
	for _, s := range q.Range(m.each(query.Duration(o.Interval*5/2)), known.upto.Add(o.Interval), at, o.Interval) {
		t := query.TargetOf(s.Labels)
		for _, p := range s.Points {
			known.set(t, int((p.Time.Sub(known.first)+o.Interval/2)/o.Interval), p.Value)
		}
	}
	if failed != len(q.Problems) || q.GaveUp() {
		return nil
	}
	if c != nil && c.values()+len(known.by)*known.n <= mostCached {
		known.upto = known.first.Add((at.Add(-settled).Sub(known.first) / o.Interval) * o.Interval)
		c.by[m.Name] = known
	}
	return known.present()
}

// set sets one observation.
func (k *observed) set(t query.Target, i int, v float64) {
	if i < 0 || i >= k.n {
		return
	}
	values := k.by[t]
	if values == nil {
		values = slices.Repeat([]float64{math.NaN()}, k.n)
		k.by[t] = values
	}
	values[i] = v
}

// take takes the observations of an earlier window that are known for good.
func (k *observed) take(old *observed, interval time.Duration) {
	if old == nil || old.n != k.n || !old.upto.After(k.upto) || old.first.After(k.first) || k.first.Sub(old.first)%interval != 0 {
		return
	}
	shift := int(k.first.Sub(old.first) / interval)
	keep := int(old.upto.Sub(k.first)/interval) + 1
	for t, values := range old.by {
		copy(values, values[shift:])
		present := false
		for i := range values {
			if i >= keep {
				values[i] = math.NaN()
			}
			present = present || !math.IsNaN(values[i])
		}
		if present {
			k.by[t] = values
		}
	}
	k.upto = old.upto
}

// present returns the observations without gaps.
func (k *observed) present() map[query.Target][]float64 {
	all := make(map[query.Target][]float64, len(k.by))
	for t, values := range k.by {
		some := make([]float64, 0, len(values))
		for _, v := range values {
			if !math.IsNaN(v) {
				some = append(some, v)
			}
		}
		all[t] = some
	}
	return all
}

// values returns the number of values in the cache.
func (c *Cache) values() (n int) {
	for _, k := range c.by {
		n += len(k.by) * k.n
	}
	return n
}
