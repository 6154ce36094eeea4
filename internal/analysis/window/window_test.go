// SPDX-License-Identifier: Apache-2.0

package window

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/query/querytest"
	"github.com/teescope/teescope/internal/lib/stat"
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
		t.Errorf("%d metrics of 128 workloads are %d series: too many", len(metrics), len(metrics)*128*9)
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
	if err := Store(t.Context(), &k, stats, Whole(1)); err != nil {
		t.Fatal(err)
	}
	if len(k.samples) != 2*9 {
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
	if err := Store(t.Context(), &k, stats, Whole(1)); err == nil || !strings.Contains(err.Error(), "keeping 2 box plots: disk full") {
		t.Errorf("Store() = %v", err)
	}
	if err := Store(t.Context(), &k, nil, Whole(1)); err != nil {
		t.Errorf("Store() of nothing: %v", err)
	}
}

// weekly is a source of what was stored at exactly the times of a query.
type weekly struct {
	querytest.Canned
	stored map[time.Time][]query.Sample
}

func (w *weekly) Instant(_ context.Context, expr string, at time.Time) (found []query.Sample, _ error) {
	w.Asked = append(w.Asked, expr)
	for _, s := range w.stored[at] {
		if strings.Contains(expr, `metric="`+s.Labels["metric"]+`"`) && strings.HasPrefix(s.Labels["stat"], "median") {
			found = append(found, s)
		}
	}
	return found, nil
}

func (w *weekly) Range(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	by := make(map[string]*query.Series)
	for at := start; !at.After(end); at = at.Add(step) {
		found, _ := w.Instant(ctx, expr, at)
		for _, s := range found {
			id := fmt.Sprint(s.Labels)
			if by[id] == nil {
				by[id] = &query.Series{Labels: s.Labels}
			}
			by[id].Points = append(by[id].Points, query.Point{Time: at, Value: s.Value})
		}
	}
	var all []query.Series
	for _, one := range by {
		all = append(all, *one)
	}
	return all, nil
}

func (w *weekly) Append(_ context.Context, samples []query.Sample) error {
	for _, s := range samples {
		w.stored[s.Time] = append(w.stored[s.Time], s)
	}
	return nil
}

// TestCarryWeeks: databases that keep samples for eight days, for 15 days and for longer have medians of six weeks. From 15 days on, two
// carried series are enough.
func TestCarryWeeks(t *testing.T) {
	const steps, span = 4, 5 * time.Minute
	metric := Metrics()[len(Metrics())-1]
	for days, series := range map[int]int{8: 5, 15: 2, 60: 2} {
		w := &weekly{stored: make(map[time.Time][]query.Sample)}
		for i := range 9 {
			for step := range steps {
				at := querytest.Noon.Add(time.Duration(i)*week + time.Duration(step)*span)
				maps.DeleteFunc(w.stored, func(old time.Time, _ []query.Sample) bool { return at.Sub(old) > time.Duration(days)*24*time.Hour })
				one := Stat{Metric: metric, Workload: "redis", Instance: "here", Window: span, At: at, Box: stat.Box{Median: float64(10*i + step)}}
				if err := Store(t.Context(), w, []Stat{one}, 0); err != nil {
					t.Fatal(err)
				}
				q := query.NewAsker(t.Context(), w, time.Minute)
				// The analysis runs some time after a multiple of the window.
				if err := CarryWeeks(t.Context(), q, w, at.Add(2*time.Minute), span, []Metric{metric}); err != nil || len(q.Problems) > 0 {
					t.Fatal(err, q.Problems)
				}
			}
		}
		end := querytest.Noon.Add(8*week + (steps-1)*span)
		if got := len(w.stored[end]) - 1; got != series {
			t.Errorf("%d days: %d medians are carried, want %d: %+v", days, got, series, w.stored[end])
		}
		q := query.NewAsker(t.Context(), w, time.Minute)
		found := ReadWeeks(q, end, (steps-1)*span, span, metric)
		if len(found) != 1 || len(q.Problems) > 0 {
			t.Fatalf("%d days: %+v, %+v", days, found, q.Problems)
		}
		weeks := found[query.Target{Workload: "redis", Instance: "here"}]
		for i := 1; i <= Weeks; i++ {
			if first := float64(10 * (8 - i)); !slices.Equal(weeks[i], []float64{first, first + 1, first + 2, first + 3}) {
				t.Errorf("%d days: %d weeks ago it was %v, want four from %v", days, i, weeks[i], first)
			}
		}
		if len(weeks) != Weeks {
			t.Errorf("%d days: %d weeks: %v", days, len(weeks), weeks)
		}
	}
}

// TestSeriesOfAFleet: with many machines, each metric of a workload has at most three series, with those of six weeks. With one machine
// it has the nine of a box plot more. Both numbers include what a workload leaves behind within two weeks.
func TestSeriesOfAFleet(t *testing.T) {
	const workloads = 6
	for machines, most := range map[int]int{1: 9 + 2, 20: 9 + 2, 64: 1 + 2 + 8*2/workloads + 1, 129: 1 + 2, 1000: 1 + 2} {
		w := &weekly{stored: make(map[time.Time][]query.Sample)}
		pairs := 0
		for i := range 9 {
			at := querytest.Noon.Add(time.Duration(i) * week)
			maps.DeleteFunc(w.stored, func(old time.Time, _ []query.Sample) bool { return at.Sub(old) > 15*24*time.Hour })
			var stats []Stat
			for _, m := range Metrics() {
				for n := range workloads {
					one := Stat{Metric: m, Workload: fmt.Sprint("w", n), Instance: "here", Window: 5 * time.Minute, At: at, Box: stat.Box{Median: float64(n)}}
					if m.Machine {
						one.Workload = ""
					}
					if stats = append(stats, one); m.Machine {
						break
					}
				}
			}
			pairs = len(stats)
			if err := Store(t.Context(), w, stats, Whole(machines)); err != nil {
				t.Fatal(err)
			}
			if err := CarryWeeks(t.Context(), query.NewAsker(t.Context(), w, time.Minute), w, at, 5*time.Minute, Metrics()); err != nil {
				t.Fatal(err)
			}
		}
		got := len(w.stored[querytest.Noon.Add(8*week)])
		t.Logf("%d machines: %d series of %d medians; before, %d", machines, got, pairs, 15*pairs)
		if got > most*pairs {
			t.Errorf("%d machines: %d series of %d medians, want at most %d of each", machines, got, pairs, most)
		}
	}
}
