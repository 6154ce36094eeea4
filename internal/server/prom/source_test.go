// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// ofStore returns the source of a store. It ends the test on an error.
func ofStore(t *testing.T, s *Store) query.Source {
	t.Helper()
	source, err := s.Source()
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// value runs a query for one number.
func value(t *testing.T, s query.Source, expr string, at time.Time) (query.Sample, bool) {
	t.Helper()
	samples, err := s.Instant(t.Context(), expr, at)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	if len(samples) == 0 {
		return query.Sample{}, false
	}
	if len(samples) > 1 {
		t.Fatalf("%s: %v", expr, samples)
	}
	return samples[0], true
}

func TestSequencesCanBeAsked(t *testing.T) {
	db := NewStore()
	for series, values := range map[string]string{
		`calls_total{workload="a"}`:    "0+50x60",
		`calls_total{workload="b"}`:    "0+10x30 0+10x29",
		`broken{workload="a"}`:         "1 NaN",
		`gappy`:                        "1 _ _ 4",
		`{__name__="quoted",x="a\"b"}`: "7x60",
	} {
		if err := db.AddSequence(series, values, noon, 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if first, last := db.Bounds(); !first.Equal(noon) || !last.Equal(noon.Add(5*time.Minute)) {
		t.Errorf("from %s to %s", first, last)
	}
	s := ofStore(t, db)
	end := noon.Add(5 * time.Minute)
	for query, want := range map[string]float64{
		`rate(calls_total{workload="a"}[5m])`: 10,
		`rate(calls_total{workload="b"}[5m])`: 2,
		`count({__name__=~".+_total"})`:       2,
		`count({workload="b"})`:               1,
		`count_over_time(gappy[5m:5s])`:       60,
		`quoted{x="a\"b"}`:                    7,
		`42`:                                  42,
	} {
		got, ok := value(t, s, query, end)
		if !ok || math.Abs(got.Value-want) > want/20 {
			t.Errorf("%s = %v, want %v", query, got.Value, want)
		}
	}
	if got, ok := value(t, s, "broken", noon.Add(5*time.Second)); ok {
		t.Errorf("a NaN is answered: %v", got)
	}
	if got, ok := value(t, s, "gappy", noon.Add(7*time.Second)); !ok || got.Value != 1 {
		t.Errorf("in a gap: %v %v", got, ok)
	}
	series, err := s.Range(t.Context(), `calls_total{workload="a"}`, noon, noon.Add(10*time.Second), 5*time.Second)
	if err != nil || len(series) != 1 || series[0].Labels["workload"] != "a" || fmt.Sprint(series[0].Points[2].Value) != "100" ||
		!series[0].Points[2].Time.Equal(noon.Add(10*time.Second)) {
		t.Errorf("range: %v %v", series, err)
	}
	for query, part := range map[string]string{"rate(": "parse error", `gappy[5m]`: "is a matrix", `"a"`: "is a string"} {
		if _, err := s.Instant(t.Context(), query, end); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: error %v, want %q in it", query, err, part)
		}
	}
}

func TestSequencesThatCannotBe(t *testing.T) {
	db := NewStore()
	for series, values := range map[string]string{"a{": "1", "a": "1..2", `b{x="1"}`: "{{schema:1 count:1}}"} {
		if err := db.AddSequence(series, values, noon, time.Second); err == nil || !strings.Contains(err.Error(), series) {
			t.Errorf("%s %s: error %v, want the series in it", series, values, err)
		}
	}
	db = NewStore()
	for _, v := range []string{"1", "2"} {
		if err := db.AddSequence("a", v, noon, time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Source(); err == nil || !strings.Contains(err.Error(), "two values at 2026-01-01T12:00:00Z: 1 and 2") {
		t.Errorf("two values at once: %v", err)
	}
}

const openMetrics = `# HELP calls Calls.
# TYPE calls counter
# UNIT wait_seconds seconds
calls_total{workload="a",instance="h"} 0 1767268800
calls_total{workload="a",instance="h"} 600 1767269100.000
calls_total{instance="h",workload="a"} 300 1767268950 # {trace="x"} 1
# TYPE wait_seconds gauge
wait_seconds 1.5 1767268800.5
`

func TestOpenMetricsText(t *testing.T) {
	db := NewStore()
	if err := db.ReadOpenMetrics(strings.NewReader(openMetrics + "# EOF\n")); err != nil {
		t.Fatal(err)
	}
	if first, last := db.Bounds(); !first.Equal(noon) || !last.Equal(noon.Add(5*time.Minute)) {
		t.Errorf("from %s to %s", first, last)
	}
	s := ofStore(t, db)
	if got, _ := value(t, s, "increase(calls_total[301s])", noon.Add(5*time.Minute)); math.Abs(got.Value-600) > 10 {
		t.Errorf("600 calls in any order are %v", got.Value)
	}
	if got, ok := value(t, s, "wait_seconds", noon.Add(time.Second)); !ok || got.Value != 1.5 {
		t.Errorf("wait_seconds = %v", got.Value)
	}
}

func TestOpenMetricsErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		openMetrics:             "line 9: data does not end with # EOF",
		"":                      ErrEmpty.Error(),
		" \n\n":                 ErrEmpty.Error(),
		"# HELP a one\n":        "line 2: data does not end with # EOF",
		"nonsense\n# EOF\n":     "line 1: expected value after metric",
		"a 1 1\na 1 x\n# EOF\n": "line 2: ",
		openMetrics + "wait_seconds{a=\"b\n# EOF\n":   "line 9: ",
		openMetrics + "wait_seconds 2\n# EOF\n":       "line 9: wait_seconds has no timestamp",
		"# TYPE a nonsense\na 1 1\n# EOF\n":           "line 1: invalid metric type",
		"a 1 1\n# EOF\nb 1 1\n":                       "line 2: unexpected data after # EOF",
		"a 1 1\na 2 1\n# EOF\n":                       "two values at 1970-01-01T00:00:01Z",
		"# HELP a one\n# HELP b two\nb 1\n# EOF\n":    "line 3: b has no timestamp",
		"a 1 1\nb{\"x\"=\"y\"} 1 1\nc one 1\n# EOF\n": "line ",
	} {
		err := NewStore().ReadOpenMetrics(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q in it", text, err, want)
		}
	}
}

func TestAStoreHasBounds(t *testing.T) {
	db := NewStore()
	db.n = maxStored
	if err := db.ReadOpenMetrics(strings.NewReader("a 1 1\n# EOF\n")); err == nil || !strings.Contains(err.Error(), "line 1: more than 10000000 samples") {
		t.Errorf("too many samples: %v", err)
	}
}

// TestTheDatabaseIsASource compares its answers with those of the API, and queries it when it cannot answer.
func TestTheDatabaseIsASource(t *testing.T) {
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Interval, o.MemoryLimit = 100*time.Millisecond, 1<<40
	s := New(o)
	var live atomic.Uint64
	s.memory.live, s.memory.collect = live.Load, func() {}
	if _, err := s.Source().Instant(t.Context(), "up", time.Now()); err == nil || !strings.Contains(err.Error(), "being opened") {
		t.Errorf("before Init: %v", err)
	}
	stop := run(t, s)
	waittest.Until(t, "a rate", func() bool {
		samples, err := s.Source().Instant(t.Context(), `rate(scrapes_total[1m])`, time.Now())
		return err == nil && len(samples) == 1 && samples[0].Labels["instance"] == "here" && samples[0].Value > 0
	})
	live.Store(1 << 40)
	if _, err := s.Source().Range(t.Context(), "up", time.Now(), time.Now(), time.Second); err == nil || !strings.Contains(err.Error(), "memory.limit is near") {
		t.Errorf("near the limit: %v", err)
	}
	live.Store(0)
	stop()
	if _, err := s.Source().Instant(t.Context(), "up", time.Now()); err == nil || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("after Shutdown: %v", err)
	}
}

// TestTheDatabaseSaysWhatAStoreSays writes the same series to both.
func TestTheDatabaseSaysWhatAStoreSays(t *testing.T) {
	var log logtest.Log
	s, stop := start(t, options(t.TempDir(), &log))
	defer stop()
	begin := time.Now().Add(-10 * time.Minute).Truncate(time.Second)
	store := NewStore()
	app := s.db.Appender(t.Context())
	for w := range 3 {
		name := fmt.Sprint("w", w)
		if err := store.AddSequence(fmt.Sprintf(`made_total{workload=%q}`, name), fmt.Sprintf("0+%dx30 0+7x29", 10*w+1), begin, 5*time.Second); err != nil {
			t.Fatal(err)
		}
		for i := range 61 {
			v := float64((10*w + 1) * i)
			if i > 30 {
				v = float64(7 * (i - 31))
			}
			ls := labels.FromStrings(model.MetricNameLabel, "made_total", "workload", name)
			if _, err := app.Append(0, ls, begin.Add(time.Duration(i)*5*time.Second).UnixMilli(), v); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := app.Commit(); err != nil {
		t.Fatal(err)
	}
	other := ofStore(t, store)
	for _, query := range []string{
		`sum(rate(made_total[5m]))`, `max(increase(made_total[2m]))`, `sum(max_over_time(rate(made_total[1m])[5m:30s]))`,
		`count(made_total{workload=~"w[01]"})`, `max(timestamp(made_total))`, `count(last_over_time({__name__=~"made_.+",workload!=""}[1m]))`,
	} {
		at := begin.Add(5*time.Minute + time.Second)
		a, okA := value(t, s.Source(), query, at)
		b, okB := value(t, other, query, at)
		if !okA || !okB || math.Abs(a.Value-b.Value) > 1e-9*math.Abs(a.Value) {
			t.Errorf("%s: the database says %v, the store %v", query, a.Value, b.Value)
		}
	}
}
