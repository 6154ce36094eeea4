// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/analysis/render"
	"github.com/teescope/teescope/internal/analysis/window"
	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/metric/metrictest"
)

var update = flag.Bool("update", false, "write the golden files again")

// source answers the queries of the rule below with a number that a test sets. It answers those of the engine as if
// every workload had always existed.
type source struct {
	mu    sync.Mutex
	calls map[string]float64 // by workload
	err   error
	block bool
	kept  map[string]int // samples by the name of their series
}

func (s *source) Append(_ context.Context, samples []query.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]int{}
	}
	for _, one := range samples {
		s.kept[one.Labels["__name__"]]++
	}
	return s.err
}

func (s *source) set(f func(*source)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

func (s *source) Instant(ctx context.Context, expr string, at time.Time) ([]query.Sample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.block {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return nil, ctx.Err()
	}
	if s.err != nil {
		return nil, s.err
	}
	if expr != "calls[1m]" {
		return nil, nil
	}
	var all []query.Sample
	for workload, n := range s.calls {
		all = append(all, query.Sample{Labels: map[string]string{"workload": workload, "instance": "a:1"}, Time: at, Value: n})
	}
	return all, nil
}

func (s *source) Range(_ context.Context, expr string, start, end time.Time, step time.Duration) ([]query.Series, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if !strings.Contains(expr, "teescope_processes") && !strings.Contains(expr, "teescope_syscalls_total") {
		return nil, nil
	}
	var all []query.Series
	for workload := range s.calls {
		one := query.Series{Labels: map[string]string{"workload": workload, "instance": "a:1"}}
		for t := start; !t.After(end); t = t.Add(step) {
			one.Points = append(one.Points, query.Point{Time: t, Value: float64(t.UnixMilli()) / 1000})
		}
		all = append(all, one)
	}
	return all, nil
}

// rule finds workloads that make more than 1,000 calls per second.
func rule() engine.Rule {
	return engine.Rule{
		Name: "chatter", Title: "too many calls", Sources: []string{"a test"},
		Signals: []engine.Signal{{Name: "calls", Query: "calls[$window]", Unit: "1/s", Help: "calls"}},
		Judge: func(w engine.Workload) *engine.Verdict {
			n, _ := w.Value(engine.Signal{Name: "calls"})
			if n <= 1000 {
				return nil
			}
			return &engine.Verdict{
				Confidence: analysis.Likely, Cause: fmt.Sprintf("%s makes %.0f calls a second.", w.Name, n), Evidence: []string{"calls"},
				Advice: []string{"Make fewer."}, Gain: estimate.Amdahl("one thread", 0.1, 0.2, "an assumption"),
			}
		},
	}
}

// analyst returns an Analyst that runs until the test ends.
func analyst(t *testing.T, s *source, tell func([]analysis.Finding)) (*Analyst, *logtest.Log) {
	t.Helper()
	var log logtest.Log
	a := New(Options{
		Source: s, Name: "a test", Rules: []engine.Rule{rule()}, Interval: time.Minute, Window: time.Minute,
		Scrape: 5 * time.Second, Keep: s, File: filepath.Join(t.TempDir(), "findings.json"), SilenceFile: filepath.Join(t.TempDir(), "silences.json"), HistoryFile: filepath.Join(t.TempDir(), "findings-history.jsonl"),
		Tell: tell, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err := a.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a, &log
}

func start(t *testing.T, a *Analyst) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
}

// metrics returns the Analyst's metrics as text.
func metrics(t *testing.T, a *Analyst) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(exposed{a})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	families = slices.DeleteFunc(families, func(f *dto.MetricFamily) bool {
		return strings.HasSuffix(f.GetName(), "_seconds") && strings.HasPrefix(f.GetName(), "teescope_analysis") ||
			f.GetName() == "teescope_analysis_cpu_seconds_total" // they differ between runs
	})
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// exposed lets the client library gather a collector.
type exposed struct{ *Analyst }

func (exposed) Describe(chan<- *prometheus.Desc) {}

func (e exposed) Collect(out chan<- prometheus.Metric) {
	_ = e.Analyst.Collect(context.Background(), func(m prometheus.Metric) { out <- m })
}

func TestFindsOnceAndSaysWhenItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{calls: map[string]float64{"busy": 5000, "quiet": 3}}
		var told [][]analysis.Finding
		a, log := analyst(t, s, func(live []analysis.Finding) { told = append(told, live) })
		if _, err := a.Newest(); !errors.Is(err, errNone) {
			t.Errorf("before the first analysis: %v", err)
		}
		began := time.Now()
		start(t, a)
		time.Sleep(3*time.Minute + time.Second)
		r, err := a.Newest()
		if err != nil || len(r.Findings) != 1 || r.Workloads != 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		f := r.Findings[0]
		if f.Workload != "busy" || !f.FirstSeen.Equal(began) || !f.LastSeen.Equal(began.Add(3*time.Minute)) || f.Severity != analysis.Medium {
			t.Errorf("found %+v", f)
		}
		if n := log.Count("found what slows a workload"); n != 1 {
			t.Errorf("it was logged %d times", n)
		}
		// Two workloads, four analyses, seven numbers of each box plot.
		if n := s.kept[window.ValueFamily]; n != 2*4*7 {
			t.Errorf("%d numbers of box plots are kept", n)
		}
		metrictest.Golden(t, "testdata/metrics.prom", []byte(metrics(t, a)), *update)

		s.set(func(s *source) { s.calls["busy"] = 3 })
		time.Sleep(time.Minute)
		if r, err = a.Newest(); err != nil || len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0].Cause, "not found since ") || r.Findings[0].AbsentSince.IsZero() {
			t.Errorf("an ended finding is reported as present: %+v, %v", r.Findings, err)
		}
		time.Sleep(3 * time.Minute)
		if r, err = a.Newest(); err != nil || len(r.Findings) != 0 || log.Count("a finding is over") != 1 {
			t.Errorf("%+v is still there, %v", r.Findings, err)
		}
		if len(told) != 8 || len(told[0]) != 0 || len(told[1]) != 1 || len(told[7]) != 0 { // the first look is not confirmed
			t.Errorf("reported %d times: %v", len(told), told)
		}
		if text := metrics(t, a); !strings.Contains(text, `teescope_findings{severity="medium"} 0`) || strings.Contains(text, "teescope_finding_info") {
			t.Errorf("the series are\n%s", text)
		}
	})
}

// A source that fails ends nothing, keeps the findings, and is logged once.
func TestASourceThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{calls: map[string]float64{"busy": 5000}}
		a, log := analyst(t, s, nil)
		start(t, a)
		time.Sleep(time.Second)
		s.set(func(s *source) { s.err = errors.New("disk full") })
		time.Sleep(10 * time.Minute)
		r, err := a.Newest()
		if err != nil || len(r.Findings) != 1 {
			t.Errorf("%+v, %v", r.Findings, err)
		}
		if n := log.Count("analysis failed"); n != 1 {
			t.Errorf("it logged %d times:\n%s", n, log.String())
		}
		if text := metrics(t, a); !strings.Contains(text, `teescope_analyses_total{outcome="complete"} 1`+"\n") || !strings.Contains(text, `{outcome="partial"} 10`+"\n") {
			t.Errorf("the series are\n%s", text)
		}
		s.set(func(s *source) { s.err = nil })
		time.Sleep(time.Minute)
		s.set(func(s *source) { s.err = errors.New("disk full") })
		time.Sleep(time.Minute)
		if n := log.Count("analysis failed"); n != 2 {
			t.Errorf("it logged %d times in all", n)
		}
	})
}

func TestASourceThatNeverAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := analyst(t, &source{block: true}, nil)
		start(t, a)
		time.Sleep(maxTime + time.Second)
		r, err := a.Newest()
		if err != nil || len(r.Problems) == 0 || len(r.Findings) != 0 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestARuleThatPanics(t *testing.T) {
	s := &source{calls: map[string]float64{"busy": 5000}}
	bad := rule()
	bad.Judge = func(engine.Workload) *engine.Verdict { panic("a bug") }
	a := New(Options{Source: s, Rules: []engine.Rule{bad}, Interval: time.Hour, Window: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err := a.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := metrics(t, a); !strings.Contains(text, `teescope_analysis_problems{kind="broken"} 1`+"\n") {
		t.Errorf("the series are\n%s", text)
	}
}

func TestSeriesAreBounded(t *testing.T) {
	s := &source{calls: map[string]float64{}}
	for i := range maxSeries + 20 {
		s.calls[fmt.Sprintf("w%03d", i)] = 5000
	}
	a, _ := analyst(t, s, nil)
	if err := a.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := metrics(t, a)
	if n := strings.Count(text, "teescope_finding_info{"); n != maxSeries || !strings.Contains(text, "teescope_findings_left_out 20\n") {
		t.Errorf("%d findings have series:\n%.500s", n, text)
	}
}

func ask(t *testing.T, h http.Handler, query string) (int, []byte) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/findings?"+query, nil))
	if kind := w.Header().Get("Content-Type"); kind != "application/json" {
		t.Errorf("%q is answered as %q", query, kind)
	}
	return w.Code, w.Body.Bytes()
}

func TestServe(t *testing.T) {
	s := &source{calls: map[string]float64{"busy": 5000}}
	a, _ := analyst(t, s, nil)
	report := func(query string) render.Report {
		t.Helper()
		status, body := ask(t, a, query)
		var r render.Report
		if err := json.Unmarshal(body, &r); status != http.StatusOK || err != nil {
			t.Fatalf("%q: %d %v\n%s", query, status, err, body)
		}
		return r
	}
	if r := report(""); len(r.Findings) != 1 {
		t.Errorf("a request before the first analysis runs one, and finds %d", len(r.Findings))
	}
	if err := a.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	newest := report("")
	if again := report(""); !again.At.Equal(newest.At) {
		t.Error("a request for the newest result runs an analysis")
	}
	for _, at := range []string{"2026-01-02T15:04:05Z", "1767366245", "1767366245.5"} {
		r := report(url.Values{"at": {at}}.Encode())
		if r.At.Truncate(time.Second) != time.Unix(1767366245, 0).UTC() || r.Window != 60 {
			t.Errorf("at %s: %s, %v s", at, r.At, r.Window)
		}
	}
	before := time.Now()
	if r := report(url.Values{"at": {before.Add(30 * time.Minute).Format(time.RFC3339)}}.Encode()); r.At.Before(before.Truncate(time.Second)) || r.At.After(time.Now()) {
		t.Errorf("half an hour ahead of %s is answered for %s", before, r.At)
	}
	for query, want := range map[string]string{
		"at=noon": "is not a time", "at=NaN": "is not a time", "at=1e300": "is not a time", "at=-5": "before 1970", "at=2999-01-01T00:00:00Z": "in the future",
	} {
		if status, body := ask(t, a, query); status != http.StatusBadRequest || !strings.Contains(string(body), want) || !json.Valid(body) {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
}

// A request after a restart, before the first analysis, gets the findings with their original start times.
func TestWhatIsKnownKeepsItsTimeOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{calls: map[string]float64{"busy": 5000}}
		a, log := analyst(t, s, nil)
		began := time.Now()
		if err := a.once(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b := New(a.opts)
		if err := b.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		r, err := b.reportOf(t.Context(), time.Now())
		if err != nil || len(r.Findings) != 1 || !r.Findings[0].FirstSeen.Equal(began) {
			t.Errorf("first seen at %v: %+v, %v", began, r.Findings, err)
		}
		if r, err = b.reportOf(t.Context(), began.Add(-time.Minute)); err != nil || !r.Findings[0].FirstSeen.Equal(began.Add(-time.Minute)) {
			t.Errorf("before it was known: %+v, %v", r.Findings, err)
		}
		if err := b.once(t.Context()); err != nil || log.Count("found what") != 1 {
			t.Errorf("logged %d times, %v", log.Count("found what"), err)
		}
	})
}

// Two requests about the past are not analysed concurrently. A request that waits too long gets an error that says to try again.
func TestOneAnalysisAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := analyst(t, &source{block: true}, nil)
		go ask(t, a, "at=0")
		synctest.Wait()
		if status, body := ask(t, a, "at=0"); status != http.StatusServiceUnavailable || !strings.Contains(string(body), "try again") {
			t.Errorf("%d %s", status, body)
		}
		time.Sleep(maxTime)
	})
}

// TestServeOperations: costs are multiplied, workloads selected, and what is not a number is refused.
func TestServeOperations(t *testing.T) {
	s := &source{calls: map[string]float64{"busy": 5000}}
	a, _ := analyst(t, s, nil)
	if err := a.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	low := 2.5
	a.newest.Operations = []analysis.Operations{
		{Workload: "redis", State: "counted", PerSecond: &analysis.Evidence{Value: 1000, Unit: "1/s"}, Costs: []analysis.Evidence{{Name: "system calls", Value: 3, Low: &low, Query: "a / b"}}},
		{Workload: "nginx", State: "missing"},
	}
	answer := func(query string) (all operationsAnswer) {
		t.Helper()
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/operations"+query, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &all); err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s: %d %v %s", query, w.Code, err, w.Body)
		}
		return all
	}
	if all := answer(""); len(all.Operations) != 2 || all.Per != 1 || all.Operations[0].Costs[0].Value != 3 || all.Window != 60 || all.At.IsZero() {
		t.Errorf("%+v", all)
	}
	all := answer("?per=100&workload=redis")
	if c := all.Operations[0].Costs[0]; len(all.Operations) != 1 || all.Per != 100 || c.Value != 300 || *c.Low != 250 || c.High != nil || c.Query != "(a / b) * 100" || all.Operations[0].PerSecond.Value != 1000 {
		t.Errorf("%+v", all)
	}
	if low != 2.5 || a.newest.Operations[0].Costs[0].Value != 3 {
		t.Error("the report has changed")
	}
	if all := answer("?workload=none"); all.Operations == nil || len(all.Operations) != 0 {
		t.Errorf("%+v", all)
	}
	for _, query := range []string{"?per=0", "?per=-1", "?per=NaN", "?per=Inf", "?per=x", "?per=1e10", "?at=noon"} {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/operations"+query, nil))
		if w.Code != http.StatusBadRequest || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}
