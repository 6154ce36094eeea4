// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/teescope/teescope/internal/analysis/query"
	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/operation"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// application serves a text that can be replaced.
func application(t *testing.T, text string) (u *url.URL, set func(string)) {
	t.Helper()
	var body atomic.Value
	body.Store(text)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if body.Load() == "" {
			w.WriteHeader(http.StatusInternalServerError)
		}
		fmt.Fprint(w, body.Load())
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	return u, func(s string) { body.Store(s) }
}

// reads returns a server that reads the operations of an application.
func reads(t *testing.T, u *url.URL, w Workload) *Server {
	t.Helper()
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Self, o.Interval, o.Targets, o.Endpoints = nil, 100*time.Millisecond, []string{"node1:9750"}, []Endpoint{{Job: "shop", URL: u, Workload: w}}
	s, _ := start(t, o)
	return s
}

// state returns the state of a source of the only endpoint.
func state(s *Server, kind int) (string, string) {
	for _, o := range s.limiter.Load().operations {
		if all := o.sources(); len(all) > kind {
			return all[kind].state, all[kind].selector
		}
	}
	return "", ""
}

func awaitState(t *testing.T, s *Server, kind int, want string) {
	t.Helper()
	waittest.Until(t, "the state "+want, func() bool {
		got, _ := state(s, kind)
		return got == want
	})
}

// TestOperationsAreCopied: the copies have the workload and the machine of the configuration. What the target says has no effect.
func TestOperationsAreCopied(t *testing.T) {
	u, _ := application(t, strings.ReplaceAll(`# TYPE requests_total counter
requests_total{code="200",workload="victim",machine="other:1"} 40
requests_total{code="500",workload="victim",machine="other:1"} 2
requests_total{code="404"} 1000
teescope:operations_total{workload="redis",instance="node1:9750"} 9e9
teescope_syscalls_total{workload="victim"} 9e9
teescope_operations_source_info{workload="victim"} 1
# TYPE took_seconds histogram
took_seconds_bucket{le="0.1"} 30
took_seconds_bucket{le="+Inf"} 42
took_seconds_sum 3
took_seconds_count 42
`, "\t", ""))
	s := reads(t, u, Workload{Name: "redis", Operations: `requests_total{code=~"200|500"}`, Latency: "took_seconds"})
	awaitState(t, s, 0, operation.Counted)
	awaitState(t, s, 1, operation.Counted)
	waittest.Until(t, "copies", func() bool { return one(t, s, "count(teescope:operation_duration_bucket) or vector(0)") == 2 })
	for query, want := range map[string]float64{
		`sum(teescope:operations_total)`: 42,
		`sum(teescope:operations_total{workload="redis",instance="node1:9750",job="shop",counter="requests_total",basis="configured"})`: 42,
		`count(teescope:operations_total)`:                                                                        2,
		`sum(requests_total{workload="redis",exported_workload="victim"})`:                                        42,
		`max({__name__="exported_teescope:operations_total"})`:                                                    9e9,
		`max(exported_teescope_syscalls_total)`:                                                                   9e9,
		`sum(teescope:operation_duration_bucket{le="0.1",workload="redis",instance="node1:9750",unit="seconds"})`: 30,
		`count(teescope:operation_duration_bucket)`:                                                               2,
	} {
		if got := one(t, s, query); got != want {
			t.Errorf("%s = %v, want %v", query, got, want)
		}
	}
	if got := one(t, s, `count({workload="victim"}) or vector(0)`); got != 0 {
		t.Errorf("%v series claim the workload of another", got)
	}
}

// TestLatencyOfNativeHistograms: a histogram without fixed buckets is copied too.
func TestLatencyOfNativeHistograms(t *testing.T) {
	registry := prometheus.NewRegistry()
	took := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "took_seconds", Help: "h", NativeHistogramBucketFactor: 1.1})
	requests := prometheus.NewCounter(prometheus.CounterOpts{Name: "http_requests_total", Help: "h"})
	registry.MustRegister(took, requests)
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for i := range 100 { // 1 to 100 ms
			took.Observe(float64(i+1) / 1000)
			requests.Inc()
		}
		metrics.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	s := reads(t, u, Workload{Name: "w", Latency: "took_seconds"})
	awaitState(t, s, 1, operation.Counted)
	awaitState(t, s, 0, operation.Counted)
	const query = `histogram_quantile(0.5, sum by (instance, workload, counter, unit) (rate(teescope:operation_duration{workload="w",instance="node1:9750"}[1m])))`
	waittest.Until(t, "a rate of the copies", func() bool {
		found, err := s.Source().Instant(t.Context(), query, time.Now())
		if err != nil || len(found) == 0 {
			return false
		}
		if v := found[0].Value; v < 0.045 || v > 0.055 || found[0].Labels["unit"] != "seconds" {
			t.Errorf("the median of 1 to 100 ms is %+v", found)
		}
		return true
	})
}

// one returns the value of a query with one result.
func one(t *testing.T, s *Server, query string) float64 {
	t.Helper()
	all, err := s.Source().Instant(t.Context(), query, time.Now())
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %v, %v", query, all, err)
	}
	return all[0].Value
}

// TestOperationsThatAreNot: where the samples are not operations, there is a state and no series.
func TestOperationsThatAreNot(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "x_total{i=\"%d\"} 1\n", i)
		}
		return b.String()
	}
	for _, c := range []struct{ text, operations, want, selector string }{
		{"x_total 1\n", "x_total", operation.Counted, "x_total"},
		{many(mostCounters), "x_total", operation.Counted, "x_total"},
		{many(mostCounters + 1), "x_total", operation.TooMany, "x_total"},
		{"x_total 9007199254740992\n", "x_total", operation.Counted, "x_total"},
		{"x_total 1e300\n", "x_total", operation.Invalid, "x_total"},
		{"x_total{a=\"1\"} 1\nx_total{a=\"2\"} NaN\n", "x_total", operation.Invalid, "x_total"},
		{"x_total +Inf\n", "x_total", operation.Invalid, "x_total"},
		{"x_total -1\n", "x_total", operation.Invalid, "x_total"},
		{"# TYPE x gauge\nx 1\n", "x", operation.NoCounter, "x"},
		{"# TYPE x summary\nx{quantile=\"0.5\"} 1\nx_sum 1\nx_count 1\n", "x", operation.NoCounter, "x"},
		{"# TYPE x summary\nx{quantile=\"0.5\"} 1\nx_sum 1\nx_count 1\n", "x_count", operation.Counted, "x_count"},
		{many(mostCounters+1) + "x 1\n", "x", operation.Counted, "x"},
		{"y_total 1\n", "x_total", operation.Missing, "x_total"},
		{"x_total{a=\"1\"} 1\n", `x_total{a="2"}`, operation.Missing, `x_total{a="2"}`},
		{"y_total 1\n", "", operation.NoKnown, ""},
		{"redis_commands_processed_total 1\n", "", operation.Counted, "redis_commands_processed_total"},
		{"http_request_duration_seconds_count 1\nhttp_requests_total 1\n", "", operation.Counted, "http_requests_total"},
		{"redis_commands_processed_total 1\nnginx_http_requests_total 1\n", "", operation.Ambiguous, ""},
	} {
		t.Run(c.want, func(t *testing.T) {
			u, _ := application(t, c.text)
			s := reads(t, u, Workload{Name: "w", Operations: c.operations})
			awaitState(t, s, 0, c.want)
			if _, selector := state(s, 0); selector != c.selector {
				t.Errorf("it reads %q, want %q", selector, c.selector)
			}
			copies := func() []query.Sample {
				found, err := s.Source().Instant(t.Context(), "count by (basis) (teescope:operations_total)", time.Now())
				if err != nil {
					t.Error(err)
				}
				return found
			}
			found := copies()
			if c.want == operation.Counted { // the state is known a little earlier
				waittest.Until(t, "copies", func() bool { found = copies(); return len(found) == 1 })
			} else if len(found) > 0 {
				t.Errorf("%.60q: %v", c.text, found)
			}
			if guessed := c.operations == ""; len(found) == 1 && (found[0].Labels["basis"] == operation.Guessed) != guessed {
				t.Errorf("basis %v", found)
			}
		})
	}
}

// TestOperationsEnd: the copies end with what they are copies of, and begin again.
func TestOperationsEnd(t *testing.T) {
	const good = "x_total{a=\"1\"} 1\nx_total{a=\"2\"} 2\n"
	u, set := application(t, good)
	s := reads(t, u, Workload{Name: "w", Operations: "x_total"})
	sum := func(want float64) {
		t.Helper()
		waittest.Until(t, fmt.Sprintf("a sum of %v", want), func() bool {
			return one(t, s, "sum(teescope:operations_total) or vector(-1)") == want
		})
	}
	sum(3)
	set("x_total{a=\"1\"} 1\nx_total{a=\"2\"} NaN\n")
	awaitState(t, s, 0, operation.Invalid)
	sum(-1) // not 1: a part is not the whole
	set("x_total{a=\"1\"} 5\nx_total{a=\"2\"} 6\n")
	sum(11)
	set("x_total{a=\"1\"} 5\n")
	sum(5)
	set("")
	awaitState(t, s, 0, operation.Down)
	sum(-1)
	set(good)
	sum(3)
}

func TestMachineOf(t *testing.T) {
	for _, c := range []struct {
		address, stated, here string
		targets               []string
		want                  string
	}{
		{"127.0.0.1:1", "", "box", nil, "box"},
		{"[::1]:1", "", "box", []string{"node1:9750"}, "box"},
		{"localhost:1", "", "box", []string{"node1:9750"}, "box"},
		{"box:1", "", "box", []string{"node1:9750"}, "box"},
		{"node1:1", "", "box", []string{"https://node1:9750", "node2:9750"}, "node1:9750"},
		{"exporter:1", "", "", []string{"node1:9750"}, "node1:9750"},
		{"exporter:1", "node2:9750", "", []string{"node1:9750", "https://node2:9750"}, "node2:9750"},
		{"exporter:1", "", "", []string{"node1:9750", "node2:9750"}, "error: add machine=, one of node1:9750, node2:9750"},
		{"node1:1", "", "", []string{"node1:9750", "node1:9751"}, "error: add machine="},
		{"127.0.0.1:1", "", "box", []string{"127.0.0.1:9750"}, "error: add machine=, one of box, 127.0.0.1:9750"},
		{"127.0.0.1:1", "", "", nil, "error: no agent watches the workload w: add it to targets"},
		{"node1:1", "node3:9750", "", []string{"node1:9750"}, "error: machine=node3:9750 is not an agent: use one of node1:9750"},
		{"127.0.0.1:1", "", "", []string{"node1:9750", "node2:9750"}, "error: which agent watches the workload w"},
	} {
		got, err := machineOf(Endpoint{Job: "a", URL: &url.URL{Scheme: "http", Host: c.address, Path: "/m", RawQuery: "key=secret"}, Workload: Workload{Name: "w", Machine: c.stated}}, c.targets, c.here)
		if reason, wrong := strings.CutPrefix(c.want, "error: "); wrong {
			if err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), "scrape: a=http://"+c.address+"/m: ") {
				t.Errorf("%s: %q, %v, want %s", c.address, got, err, reason)
			}
		} else if got != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %s", c.address, got, err, c.want)
		}
	}
}
