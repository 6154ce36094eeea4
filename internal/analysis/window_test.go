// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
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

func TestWindows(t *testing.T) {
	source := &canned{instants: scraped(), value: map[string]func(time.Time) map[string]float64{
		"teescope_syscalls_total": func(at time.Time) map[string]float64 {
			second := noon.Sub(at).Seconds()
			v := map[string]float64{"redis": second, "idle": 1}
			if second < 20 {
				v["young"] = 1 // four observations are no box plot
			}
			if second == 10 {
				v["redis"] = 1e6
			}
			return v
		},
		"sgx_epc_free_bytes": func(time.Time) map[string]float64 { return map[string]float64{"": 4096} },
	}}
	stats, problems := Windows(t.Context(), source, noon, WindowOptions{})
	if len(problems) > 0 || len(stats) != 2 {
		t.Fatalf("Windows() = %+v, %+v", stats, problems)
	}
	machine, redis := stats[0], stats[1]
	if machine.Workload != "" || machine.Metric.Name != "sgx_epc_free_bytes" || machine.Box.Median != 4096 || machine.Box.N != 60 {
		t.Errorf("of the machine: %+v", machine)
	}
	b := redis.Box
	if redis.Workload != "redis" || redis.Instance != "here" || redis.Expected != 60 || b.N != 60 || b.Min != 0 || b.Max != 1e6 ||
		b.Outlying != 1 || b.WhiskerHigh != 295 || redis.Median.N != 60 || !redis.Median.Bounded() {
		t.Errorf("of redis: %+v", redis)
	}
	if want := "sum by (instance, workload) (irate(teescope_syscalls_total[12500ms]))"; !slices.Contains(source.asked, want) {
		t.Errorf("%q was not among %q", want, source.asked)
	}
}

func TestWindowsSayWhatTheyLack(t *testing.T) {
	young := &canned{instants: map[string][]Sample{"teescope_build_info": {{Value: 3}}}}
	if stats, problems := Windows(t.Context(), young, noon, WindowOptions{}); len(stats) > 0 || len(problems) != 1 || problems[0].Kind != Absent {
		t.Errorf("after three scrapes: %+v, %+v", stats, problems)
	}
	if stats, problems := Windows(t.Context(), young, noon, WindowOptions{Interval: 2 * time.Minute}); len(stats) > 0 || len(problems) != 1 || !strings.Contains(problems[0].Error, "take a longer one") {
		t.Errorf("of two scrapes: %+v, %+v", stats, problems)
	}
	down := &canned{fails: map[string]error{"": errors.New("503 busy")}}
	if _, problems := Windows(t.Context(), down, noon, WindowOptions{Interval: time.Second}); len(problems) != patience || len(down.asked) != patience ||
		!strings.Contains(problems[1].Error, "503 busy; nothing more is asked") {
		t.Errorf("asked %d times, problems %+v", len(down.asked), problems)
	}
	once := &canned{instants: scraped(), fails: map[string]error{"ocalls": errors.New("too many samples")}}
	if _, problems := Windows(t.Context(), once, noon, WindowOptions{}); len(problems) != 1 || len(once.asked) != 1+len(WindowMetrics()) ||
		!strings.Contains(problems[0].Query, "teescope_ocalls_total") {
		t.Errorf("asked %d times, problems %+v", len(once.asked), problems)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if stats, _ := Windows(gone, once, noon, WindowOptions{}); len(stats) > 0 {
		t.Errorf("nobody waits, and there are %+v", stats)
	}
}

// TestWindowsAreBounded: whoever has an enclave comes first, then who has the most processor time.
func TestWindowsAreBounded(t *testing.T) {
	many := func(time.Time) map[string]float64 {
		v := map[string]float64{"enclave": 0.001}
		for i := range 200 {
			v[fmt.Sprintf("w%03d", i)] = float64(i)
		}
		return v
	}
	source := &canned{instants: scraped(), value: map[string]func(time.Time) map[string]float64{
		"teescope_cpu_seconds_total": many,
		"sgx_workload_faults_total":  func(time.Time) map[string]float64 { return map[string]float64{"enclave": 1} },
	}}
	stats, problems := Windows(t.Context(), source, noon, WindowOptions{Workloads: 3})
	var names []string
	for _, s := range stats {
		names = append(names, s.Workload)
	}
	if got := strings.Join(names, " "); got != "enclave enclave w198 w199" || len(problems) != 1 || problems[0].Kind != Bounded {
		t.Errorf("kept %q, problems %+v", got, problems)
	}
}

func TestIntervals(t *testing.T) {
	for count, want := range map[float64]time.Duration{60: 5 * time.Second, 59: 5 * time.Second, 66: 5 * time.Second, 20: 15 * time.Second, 5: time.Minute, 300: time.Second, 3000: 100 * time.Millisecond} {
		q := &asker{ctx: t.Context(), source: &canned{instants: map[string][]Sample{"": {{Value: count}}}}, within: time.Minute}
		if got := q.interval(noon, 5*time.Minute); got != want {
			t.Errorf("%v samples in five minutes are one every %v, want %v", count, got, want)
		}
	}
}

func TestWindowMetricsAreSortedAndDistinct(t *testing.T) {
	metrics := WindowMetrics()
	seen := make(map[string]bool)
	for _, m := range metrics {
		if seen[m.Name] || m.Help == "" || m.Unit == "" || m.Least <= 0 {
			t.Errorf("%+v", m)
		}
		seen[m.Name] = true
	}
	if len(metrics) > 32 {
		t.Errorf("%d metrics of 128 workloads are %d series: too many", len(metrics), len(metrics)*128*windowSeries)
	}
}

// kept takes what is appended.
type kept struct {
	samples []Sample
	err     error
}

func (k *kept) Append(_ context.Context, samples []Sample) error {
	k.samples = append(k.samples, samples...)
	return k.err
}

func TestStoreWindows(t *testing.T) {
	source := &canned{instants: scraped(), value: map[string]func(time.Time) map[string]float64{
		"teescope_syscalls_total": func(at time.Time) map[string]float64 { return map[string]float64{"redis": noisy(at, 100)} },
		"sgx_epc_free_bytes":      func(time.Time) map[string]float64 { return map[string]float64{"": 4096} },
	}}
	stats, _ := Windows(t.Context(), source, noon, WindowOptions{})
	var k kept
	if err := StoreWindows(t.Context(), &k, stats); err != nil {
		t.Fatal(err)
	}
	if len(k.samples) != 2*windowSeries {
		t.Fatalf("%d samples", len(k.samples))
	}
	found := map[string]float64{}
	for _, s := range k.samples {
		if !s.Time.Equal(noon) || s.Labels["window"] != "5m" || math.IsNaN(s.Value) || s.Labels["instance"] != "here" {
			t.Errorf("%+v", s)
		}
		if s.Labels["workload"] == "redis" {
			found[s.Labels["__name__"]+" "+s.Labels["stat"]] = s.Value
		} else if _, there := s.Labels["workload"]; there {
			t.Errorf("%+v: an empty label is none", s)
		}
	}
	b := stats[1].Box
	for name, want := range map[string]float64{
		"teescope:window_samples ": 60, "teescope:window_outliers ": float64(b.Outlying), "teescope:window_value min": b.Min,
		"teescope:window_value whisker_low": b.WhiskerLow, "teescope:window_value q1": b.Q1, "teescope:window_value median": b.Median,
		"teescope:window_value q3": b.Q3, "teescope:window_value whisker_high": b.WhiskerHigh, "teescope:window_value max": b.Max,
	} {
		if got, there := found[name]; !there || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	k.err = errors.New("disk full")
	if err := StoreWindows(t.Context(), &k, stats); err == nil || !strings.Contains(err.Error(), "keeping 2 box plots: disk full") {
		t.Errorf("StoreWindows() = %v", err)
	}
	if err := StoreWindows(t.Context(), &k, nil); err != nil {
		t.Errorf("of nothing: %v", err)
	}
}
