// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
	"github.com/teescope/teescope/internal/server/discovery"
)

// exporter counts its scrapes.
type exporter struct {
	mu sync.Mutex
	n  int
}

func (e *exporter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "# TYPE scrapes_total counter\nscrapes_total %d\n", e.n)
}

func options(dir string, log *logtest.Log) Options {
	return Options{
		DataDir: dir, Interval: 5 * time.Second, RetentionTime: 24 * time.Hour, RetentionSize: 1 << 30,
		Self: &exporter{}, Instance: "here", Registry: prometheus.NewRegistry(),
		Version: Version{Version: "1.2.3"}, Flags: map[string]string{"interval": "5s"},
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
}

// start runs a server and returns a function that stops it.
func start(t *testing.T, o Options) (*Server, func()) {
	t.Helper()
	s := New(o)
	return s, run(t, s)
}

// run initialises and runs a server.
func run(t *testing.T, s *Server) func() {
	t.Helper()
	if err := s.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run() = %v", err)
			}
			if err := s.Shutdown(context.Background()); err != nil {
				t.Errorf("Shutdown() = %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

type sample struct {
	Metric map[string]string
	Values [][2]any // of a range query
}

// get requests a path of the API and decodes the data of the answer.
func get(t *testing.T, h http.Handler, path string, data any) int {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1"+path, nil))
	if data != nil {
		answer := struct{ Data any }{Data: data}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s: %v in %s", path, err, w.Body)
		}
	}
	return w.Code
}

// samples returns the timestamps and values of a range query of one series.
func samples(t *testing.T, s *Server, query string) (labels map[string]string, times, values []float64) {
	t.Helper()
	var data struct{ Result []sample }
	get(t, s.Handler(), "/query?query="+url.QueryEscape(query), &data)
	if len(data.Result) == 0 {
		return nil, nil, nil
	}
	for _, v := range data.Result[0].Values {
		f, err := strconv.ParseFloat(v[1].(string), 64)
		if err != nil {
			t.Fatal(err)
		}
		times, values = append(times, v[0].(float64)), append(values, f)
	}
	return data.Result[0].Metric, times, values
}

// TestFirstSeconds checks what a page needs: one sample immediately, a second one for rates a second later, and then
// the real interval. There must be no gap and no staleness marker in between.
func TestFirstSeconds(t *testing.T) {
	var log logtest.Log
	s, stop := start(t, options(t.TempDir(), &log))
	begin := time.Now()
	waittest.Until(t, "two samples", func() bool {
		_, times, _ := samples(t, s, "scrapes_total[1m]")
		return len(times) >= 2
	})
	t.Logf("two samples after %v", time.Since(begin))
	waittest.Until(t, "a sample at the real interval", func() bool {
		_, times, _ := samples(t, s, "scrapes_total[1m]")
		n := len(times)
		return n >= 5 && times[n-1]-times[n-2] > 4.5
	})
	labels, times, values := samples(t, s, "scrapes_total[1m]")
	if labels["job"] != "teescope" || labels["instance"] != "here" {
		t.Errorf("labels = %v", labels)
	}
	for i := 1; i < len(times); i++ {
		if d := times[i] - times[i-1]; d > 9 { // a scrape that is missing makes 10 s
			t.Errorf("gap of %.1f s in %v", d, times)
		}
		if values[i] != values[i-1]+1 {
			t.Errorf("values = %v: every scrape must be stored once", values)
		}
	}
	// A staleness marker would end the series for queries between two samples.
	var data struct{ Result []sample }
	middle := (times[len(times)-1] + times[len(times)-2]) / 2
	get(t, s.Handler(), fmt.Sprintf("/query?query=scrapes_total&time=%.3f", middle), &data)
	if len(data.Result) != 1 {
		t.Errorf("at %.3f, between two of %v, the series is gone", middle, times)
	}
	stop()
	if strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "level=INFO") {
		t.Errorf("a run without problems logs:\n%s", log.String())
	}
}

func TestTargets(t *testing.T) {
	agent := httptest.NewServer(&exporter{})
	defer agent.Close()
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Self, o.Interval = nil, 200*time.Millisecond
	address := strings.TrimPrefix(agent.URL, "http://")
	o.Targets = []string{address, "127.0.0.1:1"}
	s, _ := start(t, o)
	waittest.Until(t, "samples of the target", func() bool {
		labels, times, _ := samples(t, s, `scrapes_total[1m]`)
		return len(times) >= 2 && labels["job"] == "teescope" && labels["instance"] == address
	})
	waittest.Until(t, "up=0 for what does not answer", func() bool {
		_, times, values := samples(t, s, `up{instance="127.0.0.1:1"}[1m]`)
		return len(times) > 0 && values[0] == 0
	})
}

// TestAgentsSpeakOfThemselves has an agent that claims figures of another machine, by labels of its own, by the series about
// Kubernetes, which name a node, and by a recorded rule. They are stored as what they are: claims of this agent. The server's own series keep their names.
func TestAgentsSpeakOfThemselves(t *testing.T) {
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, `sgx_epc_size_bytes{instance="victim",job="teescope",exported_instance="victim"} 1
teescope_kubernetes_epc_request_bytes{namespace="shop",pod="db",container="c",node="victim"} 2
teescope_kubernetes_epc_allocatable_bytes{node="victim"} 3
teescope_workload_info{workload="db",namespace="shop",pod="db"} 4
workload:teescope_syscalls:rate2m{workload="db"} 6
`)
	}))
	defer agent.Close()
	address := strings.TrimPrefix(agent.URL, "http://")
	o := options(t.TempDir(), &logtest.Log{})
	o.Interval, o.Targets = 200*time.Millisecond, []string{address}
	o.Self = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprint(w, "teescope_kubernetes_epc_allocatable_bytes{node=\"victim\"} 5\n")
	})
	s, _ := start(t, o)
	for expr, want := range map[string]float64{
		fmt.Sprintf(`sgx_epc_size_bytes{instance=%q,job="teescope"}`, address):                  1,
		fmt.Sprintf(`exported_teescope_kubernetes_epc_request_bytes{instance=%q}`, address):     2,
		fmt.Sprintf(`exported_teescope_kubernetes_epc_allocatable_bytes{instance=%q}`, address): 3,
		fmt.Sprintf(`teescope_workload_info{instance=%q,namespace="shop",pod="db"}`, address):   4,
		fmt.Sprintf(`teescope_kubernetes_epc_allocatable_bytes{instance=%q}`, s.opts.Instance):  5,
		`exported_workload:teescope_syscalls:rate2m{workload="db"}`:                             6,
	} {
		waittest.Until(t, expr, func() bool {
			_, _, values := samples(t, s, expr+"[1m]")
			return len(values) > 0 && values[len(values)-1] == want
		})
	}
	for _, expr := range []string{`{instance="victim"}`, fmt.Sprintf(`{__name__=~"teescope_kubernetes_.*",instance=%q}`, address)} {
		if labels, _, _ := samples(t, s, expr+"[1m]"); labels != nil {
			t.Errorf("%s: %v", expr, labels)
		}
	}
}

// TestShippedRulesAreReserved has the names that shipped rules record.
func TestShippedRulesAreReserved(t *testing.T) {
	reserved := regexp.MustCompile("^(?:" + reservedNames + ")$")
	files, err := filepath.Glob("../../../rules/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range regexp.MustCompile(`record: (\S+)`).FindAllStringSubmatch(string(text), -1) {
			if n++; !reserved.MatchString(record[1]) {
				t.Errorf("a target may send %s", record[1])
			}
		}
	}
	if n == 0 {
		t.Error("no rule records anything")
	}
}

// TestAgentsComeAndGo writes the file of a discovery while the server runs. An agent that is no longer named is stale at once.
func TestAgentsComeAndGo(t *testing.T) {
	one, two := httptest.NewServer(&exporter{}), httptest.NewServer(&exporter{})
	defer one.Close()
	defer two.Close()
	file := filepath.Join(t.TempDir(), "agents.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	address := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	write(fmt.Sprintf(`[{"targets": [%q], "labels": {"instance": "node1", "rack": "r1"}}]`, address(one)))
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Self, o.Interval, o.MemoryLimit = nil, 200*time.Millisecond, 256<<20
	o.Discovery = discovery.New(discovery.Options{Sources: []discovery.Source{{Kind: discovery.File, Where: file}}, Log: o.Log})
	var scraped atomic.Int64
	o.Scraped = func(n int) { scraped.Store(int64(n)) }
	s, _ := start(t, o)
	has := func(instance string) bool {
		labels, _, _ := samples(t, s, fmt.Sprintf(`scrapes_total{job="teescope",instance=%q}[1m]`, instance))
		return labels != nil
	}
	now := func() (n int) {
		var data struct{ Result []sample }
		get(t, s.Handler(), "/query?query=scrapes_total", &data)
		return len(data.Result)
	}
	waittest.Until(t, "the first agent", func() bool { return has("node1") })
	write(fmt.Sprintf(`[{"targets": [%q], "labels": {"instance": "node1"}}, {"targets": [%q], "labels": {"instance": "node2"}}]`, address(one), address(two)))
	waittest.Until(t, "the second agent", func() bool { return has("node2") && scraped.Load() == 2 })
	write(fmt.Sprintf(`[{"targets": [%q], "labels": {"instance": "node2"}}]`, address(two)))
	waittest.Until(t, "the end of the first", func() bool { return now() == 1 })
	write("[]")
	waittest.Until(t, "no agent", func() bool { return now() == 0 && scraped.Load() == 0 })
}

func TestEndpoints(t *testing.T) {
	asked := make(chan string, 100)
	application := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.RequestURI():
		default:
		}
		w.Header()["Content-Type"] = nil // as some applications do
		fmt.Fprintln(w, "requests_total 7")
	}))
	defer application.Close()
	u, err := url.Parse(application.URL + "/probe/m%20x?target=db&module=m")
	if err != nil {
		t.Fatal(err)
	}
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Self, o.Interval, o.Endpoints = nil, 200*time.Millisecond, []Endpoint{{Job: "shop", URL: u}}
	s, _ := start(t, o)
	waittest.Until(t, "samples of the application", func() bool {
		labels, times, values := samples(t, s, `requests_total[1m]`)
		return len(times) > 0 && values[0] == 7 && labels["job"] == "shop" && labels["instance"] == u.Host
	})
	if got := <-asked; got != "/probe/m%20x?module=m&target=db" {
		t.Errorf("the application was asked for %s", got)
	}
}

func TestAPI(t *testing.T) {
	var log logtest.Log
	s, stop := start(t, options(t.TempDir(), &log))
	for _, path := range []string{
		"/status/buildinfo", "/status/runtimeinfo", "/status/config", "/status/flags", "/status/tsdb",
		"/status/walreplay", "/targets", "/rules", "/alerts", "/alertmanagers", "/notifications", "/features",
		"/labels", "/label/job/values", "/series?match[]=up", "/metadata", "/scrape_pools",
		"/query?query=up+offset+-5m", "/query?query=up@0", "/format_query?query=up",
	} {
		if code := get(t, s.Handler(), path, nil); code != http.StatusOK {
			t.Errorf("GET %s = %d", path, code)
		}
	}
	var build struct{ Version string }
	get(t, s.Handler(), "/status/buildinfo", &build)
	if build.Version != "1.2.3" {
		t.Errorf("version = %q", build.Version)
	}
	for _, path := range []string{"/write", "/otlp/v1/metrics", "/admin/tsdb/snapshot", "/admin/tsdb/delete_series?match[]=up"} {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1"+path, nil))
		if w.Code < 400 {
			t.Errorf("POST %s = %d, want it refused", path, w.Code)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/api/v1/labels", nil)
	r.Header.Set("Origin", "http://elsewhere.example")
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	if got := w.Header().Get("Access-Control-Allow-Origin"); w.Code != http.StatusOK || got != "" {
		t.Errorf("with an Origin: status %d, allowed %q; want 200 and no origin", w.Code, got)
	}
	stop()
	var answer struct{ Status, ErrorType, Error string }
	w = httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/labels", nil))
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusServiceUnavailable || answer.Error != "teescope is stopping" {
		t.Errorf("after Shutdown: %d %s, %v", w.Code, w.Body, err)
	}
}

// TestPatternCheck checks the answer that the page parses (web/src/api/client.ts): what is wrong with a regular
// expression.
func TestPatternCheck(t *testing.T) {
	var log logtest.Log
	s, _ := start(t, options(t.TempDir(), &log))
	for pattern, want := range map[string]string{
		"redis-.*|(?i)NGINX": "", ".*": "", "redis-(server|": "missing closing ): `redis-(server|`", "a(?=b)": "invalid or unsupported Perl syntax: `(?=`",
	} {
		w := httptest.NewRecorder()
		query := url.Values{"query": {"x{x=~" + strconv.Quote(pattern) + "}"}}.Encode()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/format_query?"+query, nil))
		var answer struct{ Status, Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
		if valid := w.Code == http.StatusOK; valid != (want == "") || !strings.HasSuffix(answer.Error, want) || want != "" && !strings.Contains(answer.Error, "parse error: error parsing regexp: ") {
			t.Errorf("%s: %d %s, want %q", pattern, w.Code, w.Body, want)
		}
	}
}

func TestHandlerBeforeInit(t *testing.T) {
	var log logtest.Log
	s := New(options(t.TempDir(), &log))
	if code := get(t, s.Handler(), "/labels", nil); code != http.StatusServiceUnavailable {
		t.Errorf("before Init: %d, want 503", code)
	}
}

// TestShutdownWaitsForQueries checks that a running request ends before the database is closed, and that it is
// cancelled after the timeout.
func TestShutdownWaitsForQueries(t *testing.T) {
	g := newDrainer()
	entered, cancelled := make(chan struct{}), make(chan struct{})
	g.open(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(cancelled)
	}))
	go g.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	g.close(ctx, "teescope is stopping")
	select {
	case <-cancelled:
	default:
		t.Error("close returned while a request was running")
	}
}
