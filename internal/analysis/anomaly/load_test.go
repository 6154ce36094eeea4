// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/window"
	"github.com/teescope/teescope/internal/lib/stat"
)

// grain is the distance of the values of simulated load.
const grain = 30 * time.Second

// A kindOfLoad is how the level of a workload's metrics depends on time, as a factor. phase differs by workload.
type kindOfLoad struct {
	name  string
	phi   float64 // of the logarithm, from one grain to the next
	sd    float64 // of the logarithm
	level func(at time.Time, phase time.Duration) float64
}

func flat(time.Time, time.Duration) float64 { return 1 }

// days is three times higher at noon than at midnight.
func days(at time.Time, phase time.Duration) float64 {
	of := float64(at.Add(phase/8).Unix()%86400) / 86400
	return math.Exp(math.Log(3) / 2 * (1 - math.Cos(2*math.Pi*of)))
}

// weeks are days with a quarter of the load on weekends.
func weeks(at time.Time, phase time.Duration) float64 {
	if d := at.Weekday(); d == time.Saturday || d == time.Sunday {
		return days(at, phase) / 4
	}
	return days(at, phase)
}

// job is five times higher for a part of each period.
func job(every, lasts time.Duration) func(time.Time, time.Duration) float64 {
	return func(at time.Time, phase time.Duration) float64 {
		if time.Duration(at.UnixNano()+int64(phase))%every < lasts {
			return 5
		}
		return 1
	}
}

// loads are the kinds of load of a simulated machine.
func loads() []kindOfLoad {
	return []kindOfLoad{
		{name: "steady", phi: 0.5, sd: 0.05, level: flat},
		{name: "wandering in minutes", phi: 0.9, sd: 0.3, level: flat},
		{name: "wandering in a quarter of an hour", phi: 0.967, sd: 0.3, level: flat},
		{name: "wandering in an hour", phi: 0.992, sd: 0.2, level: flat},
		{name: "days", phi: 0.9, sd: 0.1, level: days},
		{name: "days and weekends", phi: 0.9, sd: 0.1, level: weeks},
		{name: "a job every ten minutes", phi: 0.5, sd: 0.05, level: job(10*time.Minute, 2*time.Minute)},
		{name: "a job every hour", phi: 0.5, sd: 0.05, level: job(time.Hour, 6*time.Minute)},
		{name: "a job every day", phi: 0.5, sd: 0.05, level: job(24*time.Hour, 20*time.Minute)},
		{name: "a job every seven hours", phi: 0.5, sd: 0.05, level: job(7*time.Hour, 20*time.Minute)},
	}
}

// A simulation is a source of the load of a machine, with its stored windows.
type simulation struct {
	start   time.Time
	metrics []window.Metric
	names   []string
	kinds   []kindOfLoad
	values  [][][]float32 // by metric and workload
	kept    time.Duration // how long windows are kept
}

// simulate creates a machine with these workloads. step multiplies their load from a moment on.
func simulate(seed uint64, kinds []kindOfLoad, metrics []window.Metric, start time.Time, lasts time.Duration, moment time.Time, step float64) *simulation {
	s := &simulation{start: start, metrics: metrics, kinds: kinds, kept: 15 * day}
	for i := range kinds {
		s.names = append(s.names, fmt.Sprintf("w%03d", i))
	}
	n := int(lasts / grain)
	for m := range metrics {
		s.values = append(s.values, nil)
		for w, kind := range kinds {
			r := rand.New(rand.NewPCG(seed, uint64(m*1000+w)))
			phase := time.Duration(w*7919%86400) * time.Second
			x, v := make([]float32, n), r.NormFloat64()
			for i := range x {
				at := start.Add(time.Duration(i) * grain)
				level := 20 * metrics[m].Least * kind.level(at, phase)
				if !at.Before(moment) {
					level *= step
				}
				x[i] = float32(level * math.Exp(kind.sd*v))
				v = kind.phi*v + math.Sqrt(1-kind.phi*kind.phi)*r.NormFloat64()
			}
			s.values[m] = append(s.values[m], x)
		}
	}
	return s
}

// of returns the values of a metric of a workload in the time that ends at at.
func (s *simulation) of(m, w int, at time.Time, span time.Duration) []float64 {
	end := int(at.Sub(s.start) / grain)
	from := end - int(span/grain)
	if from < 0 || end > len(s.values[m][w]) {
		return nil
	}
	x := make([]float64, 0, end-from)
	for _, v := range s.values[m][w][from:end] {
		x = append(x, float64(v))
	}
	return x
}

// windows are those that end at at.
func (s *simulation) windows(at time.Time) []window.Stat {
	var all []window.Stat
	for m, metric := range s.metrics {
		for w, name := range s.names {
			x := s.of(m, w, at, 5*time.Minute)
			all = append(all, window.Stat{
				Metric: metric, Workload: name, Instance: "here", At: at, Window: 5 * time.Minute, Expected: 60,
				Box: stat.BoxOf(x), Median: stat.Interval{Value: stat.Median(x), Low: slices.Min(x), High: slices.Max(x), Level: 0.95, N: 60},
			})
		}
	}
	return all
}

// Instant implements query.Source: there are no events.
func (s *simulation) Instant(context.Context, string, time.Time) ([]query.Sample, error) {
	return nil, nil
}

// Range implements query.Source for stored windows and for means.
func (s *simulation) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) (all []query.Series, _ error) {
	if carried := `stat=~"median.*"`; strings.Contains(expr, carried) {
		for _, i := range []int{0, 2, 4} { // what window.CarryWeeks stores
			back := time.Duration(i) * 7 * day
			weeks, _ := s.Range(ctx, strings.ReplaceAll(expr, carried, `stat="median"`), start.Add(-back), end.Add(-back), step)
			for _, one := range weeks {
				one.Labels["stat"] = window.WeekStat(i)
				all = append(all, one)
			}
		}
		return all, nil
	}
	for m, metric := range s.metrics {
		stored := strings.Contains(expr, fmt.Sprintf("%s{metric=%q", window.ValueFamily, metric.Name))
		if !stored && expr != metric.Mean(query.Duration(grain)) {
			continue
		}
		for w, name := range s.names {
			one := query.Series{Labels: map[string]string{"instance": "here", "workload": name}}
			for at := start; !at.After(end); at = at.Add(step) {
				if stored && at.Before(end.Add(-s.kept)) {
					continue
				}
				if stored {
					if x := s.of(m, w, at, 5*time.Minute); x != nil {
						one.Points = append(one.Points, query.Point{Time: at, Value: stat.Median(x)})
					}
				} else if x := s.of(m, w, at, grain); x != nil {
					one.Points = append(one.Points, query.Point{Time: at, Value: x[0]})
				}
			}
			if len(one.Points) > 0 {
				all = append(all, one)
			}
		}
	}
	return all, nil
}

func seedOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}
