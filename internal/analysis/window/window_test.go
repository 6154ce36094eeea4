// SPDX-License-Identifier: Apache-2.0

package window

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/query/querytest"
)

func TestWindows(t *testing.T) {
	source := &querytest.Canned{Instants: querytest.Scraped(), Value: map[string]func(time.Time) map[string]float64{
		"teescope_syscalls_total": func(at time.Time) map[string]float64 {
			second := querytest.Noon.Sub(at).Seconds()
			v := map[string]float64{"redis": second, "idle": 1}
			if second < 20 {
				v["young"] = 1 // four observations are too few for a box plot
			}
			if second == 10 {
				v["redis"] = 1e6
			}
			return v
		},
		"sgx_epc_free_bytes": func(time.Time) map[string]float64 { return map[string]float64{"": 4096} },
	}}
	stats, problems := Compute(t.Context(), source, querytest.Noon, Options{})
	if len(problems) > 0 || len(stats) != 2 {
		t.Fatalf("Windows() = %+v, %+v", stats, problems)
	}
	machine, redis := stats[0], stats[1]
	if machine.Workload != "" || machine.Metric.Name != "sgx_epc_free_bytes" || machine.Box.Median != 4096 || machine.Box.N != 60 {
		t.Errorf("of the machine: %+v", machine)
	}
	b := redis.Box
	if redis.Workload != "redis" || redis.Instance != "here" || redis.Expected != 60 || b.N != 60 || b.Min != 0 || b.Max != 1e6 ||
		b.Outlying != 1 || b.WhiskerHigh != 295 || redis.Median.N != 60 || redis.Median.Bounded() { // a median of values on a line has no interval
		t.Errorf("of redis: %+v", redis)
	}
	if want := "sum by (instance, workload) (irate(teescope_syscalls_total[12500ms]))"; !slices.Contains(source.Asked, want) {
		t.Errorf("%q was not among %q", want, source.Asked)
	}
}

func TestWindowsSayWhatTheyLack(t *testing.T) {
	young := &querytest.Canned{Instants: map[string][]query.Sample{"teescope_build_info": {{Value: 3}}}}
	if stats, problems := Compute(t.Context(), young, querytest.Noon, Options{}); len(stats) > 0 || len(problems) != 1 || problems[0].Kind != query.Absent {
		t.Errorf("after three scrapes: %+v, %+v", stats, problems)
	}
	if stats, problems := Compute(t.Context(), young, querytest.Noon, Options{Interval: 2 * time.Minute}); len(stats) > 0 || len(problems) != 1 || !strings.Contains(problems[0].Error, "use a longer window") {
		t.Errorf("of two scrapes: %+v, %+v", stats, problems)
	}
	down := &querytest.Canned{Fails: map[string]error{"": errors.New("503 busy")}}
	if _, problems := Compute(t.Context(), down, querytest.Noon, Options{Interval: time.Second}); len(problems) != query.Patience || len(down.Asked) != query.Patience ||
		!strings.Contains(problems[1].Error, "503 busy; no more queries are run") {
		t.Errorf("asked %d times, problems %+v", len(down.Asked), problems)
	}
	once := &querytest.Canned{Instants: querytest.Scraped(), Fails: map[string]error{"ocalls": errors.New("too many samples")}}
	if _, problems := Compute(t.Context(), once, querytest.Noon, Options{}); len(problems) != 1 || len(once.Asked) != 1+len(Metrics()) ||
		!strings.Contains(problems[0].Query, "teescope_ocalls_total") {
		t.Errorf("asked %d times, problems %+v", len(once.Asked), problems)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if stats, _ := Compute(gone, once, querytest.Noon, Options{}); len(stats) > 0 {
		t.Errorf("the context has ended, but there are %+v", stats)
	}
}

// TestWindowsAreBounded: workloads with enclaves come first, then those with the most processor time.
func TestWindowsAreBounded(t *testing.T) {
	many := func(time.Time) map[string]float64 {
		v := map[string]float64{"enclave": 0.001}
		for i := range 200 {
			v[fmt.Sprintf("w%03d", i)] = float64(i)
		}
		return v
	}
	source := &querytest.Canned{Instants: querytest.Scraped(), Value: map[string]func(time.Time) map[string]float64{
		"teescope_cpu_seconds_total": many,
		"sgx_workload_faults_total":  func(time.Time) map[string]float64 { return map[string]float64{"enclave": 1} },
	}}
	stats, problems := Compute(t.Context(), source, querytest.Noon, Options{Workloads: 3})
	var names []string
	for _, s := range stats {
		names = append(names, s.Workload)
	}
	if got := strings.Join(names, " "); got != "enclave enclave w198 w199" || len(problems) != 1 || problems[0].Kind != query.Bounded {
		t.Errorf("kept %q, problems %+v", got, problems)
	}
}

func TestIntervals(t *testing.T) {
	for count, want := range map[float64]time.Duration{60: 5 * time.Second, 59: 5 * time.Second, 66: 5 * time.Second, 20: 15 * time.Second, 5: time.Minute, 300: time.Second, 3000: 100 * time.Millisecond} {
		q := query.NewAsker(t.Context(), &querytest.Canned{Instants: map[string][]query.Sample{"": {{Value: count}}}}, time.Minute)
		if got := Interval(q, querytest.Noon, 5*time.Minute); got != want {
			t.Errorf("%v samples in five minutes are one every %v, want %v", count, got, want)
		}
	}
}

func TestWindowMetricsAreSortedAndDistinct(t *testing.T) {
	metrics := Metrics()
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

// kept stores the appended samples.
type kept struct {
	samples []query.Sample
	err     error
}

func (k *kept) Append(_ context.Context, samples []query.Sample) error {
	k.samples = append(k.samples, samples...)
	return k.err
}

func TestStoreWindows(t *testing.T) {
	source := &querytest.Canned{Instants: querytest.Scraped(), Value: map[string]func(time.Time) map[string]float64{
		"teescope_syscalls_total": func(at time.Time) map[string]float64 { return map[string]float64{"redis": querytest.Noisy(at, 100)} },
		"sgx_epc_free_bytes":      func(time.Time) map[string]float64 { return map[string]float64{"": 4096} },
	}}
	stats, _ := Compute(t.Context(), source, querytest.Noon, Options{})
	var k kept
	if err := Store(t.Context(), &k, stats); err != nil {
		t.Fatal(err)
	}
	if len(k.samples) != 2*windowSeries {
		t.Fatalf("%d samples", len(k.samples))
	}
	found := map[string]float64{}
	for _, s := range k.samples {
		if !s.Time.Equal(querytest.Noon) || s.Labels["window"] != "5m" || math.IsNaN(s.Value) || s.Labels["instance"] != "here" {
			t.Errorf("%+v", s)
		}
		if s.Labels["workload"] == "redis" {
			found[s.Labels["__name__"]+" "+s.Labels["stat"]] = s.Value
		} else if _, there := s.Labels["workload"]; there {
			t.Errorf("%+v: an empty label must be omitted", s)
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
	if err := Store(t.Context(), &k, stats); err == nil || !strings.Contains(err.Error(), "keeping 2 box plots: disk full") {
		t.Errorf("Store() = %v", err)
	}
	if err := Store(t.Context(), &k, nil); err != nil {
		t.Errorf("Store() of nothing: %v", err)
	}
}

// weekly is a source of one moment: it has what was stored at exactly that time.
type weekly struct {
	querytest.Canned
	stored map[time.Time][]query.Sample
}

func (w *weekly) Instant(_ context.Context, expr string, at time.Time) (found []query.Sample, _ error) {
	w.Asked = append(w.Asked, expr)
	for _, s := range w.stored[at] {
		if strings.Contains(expr, `metric="`+s.Labels["metric"]+`"`) {
			found = append(found, s)
		}
	}
	return found, nil
}

func (w *weekly) Append(_ context.Context, samples []query.Sample) error {
	for _, s := range samples {
		w.stored[s.Time] = append(w.stored[s.Time], s)
	}
	return nil
}

// TestCarryWeeks: a database that keeps samples for eight days has medians of six weeks.
func TestCarryWeeks(t *testing.T) {
	w := &weekly{stored: make(map[time.Time][]query.Sample)}
	metric := Metrics()[len(Metrics())-1]
	for i := range 9 {
		at := querytest.Noon.Add(time.Duration(i) * week)
		one := Stat{Metric: metric, Workload: "redis", Instance: "here", Window: 5 * time.Minute, At: at}
		_ = w.Append(t.Context(), []query.Sample{{Labels: one.labels(ValueFamily, "median"), Time: at, Value: float64(i)}})
		q := query.NewAsker(t.Context(), w, time.Minute)
		// The analysis runs some time after a multiple of the window.
		if err := CarryWeeks(t.Context(), q, w, at.Add(2*time.Minute), 5*time.Minute, []Metric{metric}); err != nil || len(q.Problems) > 0 {
			t.Fatal(err, q.Problems)
		}
		delete(w.stored, at.Add(-2*week))
		if got := len(w.stored[at]); got != 1+min(i, Weeks) {
			t.Errorf("after %d weeks there are %d medians", i, got)
		}
	}
	for _, s := range w.stored[querytest.Noon.Add(8*week)][1:] {
		if weeks := 8 - int(s.Value); s.Labels["stat"] != WeekStat(weeks) || s.Labels["workload"] != "redis" || s.Labels["window"] != "5m" {
			t.Errorf("%+v", s)
		}
	}
}
