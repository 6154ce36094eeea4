// SPDX-License-Identifier: Apache-2.0

package runfile

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/teescope/teescope/internal/lib/exposition"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run"
)

// builder makes a run of single samples in any order.
type builder struct {
	known  map[string]*building // by the text of the series in the file
	series map[string]*building // by ID
	times  map[int64]bool       // milliseconds
	n      int
}

// building is a series with its samples.
type building struct {
	*run.Series
	points []point
}

// point is a sample; at is in milliseconds.
type point struct {
	at int64
	v  float64
}

func newBuilder() *builder {
	return &builder{known: map[string]*building{}, series: map[string]*building{}, times: map[int64]bool{}}
}

// get returns the series with the name and the labels that a text has, and whether the text is new.
func (b *builder) get(id []byte) (s *building, added bool, err error) {
	if s := b.known[string(id)]; s != nil {
		return s, false, nil
	}
	one, err := parseSeries(id)
	if err != nil {
		return nil, false, err
	}
	key := one.ID()
	s = b.series[key]
	if s == nil {
		if len(b.series) == run.MaxSeries {
			return nil, false, fmt.Errorf("more than %d series", run.MaxSeries)
		}
		s, added = &building{Series: one}, true
		b.series[key] = s
	}
	if len(b.known) < run.MaxSeries {
		b.known[string(id)] = s
	}
	return s, added, nil
}

// parseSeries parses the name and the labels of a series in the text format of Prometheus.
func parseSeries(id []byte) (*run.Series, error) {
	shown := func() string { return text.Terminal(text.Short(text.UTF8(string(id)), 200)) }
	families, err := exposition.Parse(append(slices.Clone(id), " 0\n"...))
	if err != nil || len(families) != 1 {
		return nil, fmt.Errorf("%q is not a name with labels", shown())
	}
	for name, family := range families {
		if len(family.GetMetric()) != 1 {
			break
		}
		s := &run.Series{Name: name, Unit: run.Unit(name)}
		for _, l := range family.GetMetric()[0].GetLabel() {
			if l.GetValue() == "" {
				continue // an empty label is none
			}
			if s.Labels == nil {
				s.Labels = map[string]string{}
			}
			s.Labels[l.GetName()] = l.GetValue()
		}
		return s, nil
	}
	return nil, fmt.Errorf("%q is not a name with labels", shown())
}

// add adds a sample. A value that is not a finite number is skipped.
func (b *builder) add(s *building, at int64, v float64) error {
	if at < 0 || at > math.MaxInt32*1000*2 {
		return errors.New("the time is not between 1970 and 2106: OpenMetrics text has seconds, and the text of Prometheus milliseconds")
	}
	if b.n++; b.n > run.MaxSamples {
		return fmt.Errorf("more than %d samples: import a part of the time or of the series", run.MaxSamples)
	}
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		s.points = append(s.points, point{at, v})
		b.times[at] = true
	}
	return nil
}

// run returns the run, with its series in the order of their IDs.
func (b *builder) run() (*run.Run, error) {
	ids, times := slices.Sorted(maps.Keys(b.series)), slices.Sorted(maps.Keys(b.times))
	ids = slices.DeleteFunc(ids, func(id string) bool { return len(b.series[id].points) == 0 })
	if len(times)*len(ids) > run.MaxSamples {
		return nil, fmt.Errorf("more than %d values, absent ones included: import a part of the time or of the series", run.MaxSamples)
	}
	r := &run.Run{}
	for _, at := range times {
		r.Times = append(r.Times, time.UnixMilli(at).UTC())
	}
	for _, id := range ids {
		s := b.series[id]
		s.Values = make([]float64, len(times))
		for i := range s.Values {
			s.Values[i] = math.NaN()
		}
		for _, p := range s.points {
			i := sort.Search(len(times), func(i int) bool { return times[i] >= p.at })
			if old := s.Values[i]; !math.IsNaN(old) && old != p.v {
				return nil, fmt.Errorf("%s has two values at %s: %v and %v", text.Terminal(id), r.Times[i].Format(time.RFC3339Nano), old, p.v)
			}
			s.Values[i] = p.v
		}
		r.Series = append(r.Series, s.Series)
	}
	r.Meta.Interval = interval(times)
	if len(r.Times) > 0 {
		r.Meta.Started, r.End = r.Times[0], &run.End{Time: r.Times[len(times)-1], Reason: "done"}
	}
	return r, nil
}

// interval returns the median time between two samples in seconds.
func interval(times []int64) float64 {
	var all []int64
	for i := 1; i < len(times); i++ {
		all = append(all, times[i]-times[i-1])
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return float64(all[len(all)/2]) / 1e3
}
