// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// latencies is an agent with two classic histograms, which grow by ten waits of 8 to 16 us with each scrape.
type latencies struct{ scrapes atomic.Int64 }

func (l *latencies) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	n := 10 * l.scrapes.Add(1)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, name := range []string{"teescope_run_queue_latency_seconds", "sgx_load_back_seconds"} {
		fmt.Fprintf(w, "# TYPE %s histogram\n", name)
		fmt.Fprintf(w, "%s_bucket{workload=\"redis\",le=\"8.192e-06\"} 0\n%[1]s_bucket{workload=\"redis\",le=\"1.6384e-05\"} %d\n", name, n)
		fmt.Fprintf(w, "%s_bucket{workload=\"redis\",le=\"+Inf\"} %d\n%[1]s_sum{workload=\"redis\"} %v\n%[1]s_count{workload=\"redis\"} %[2]d\n", name, n, 1e-5*float64(n))
	}
}

// The waits of a workload are one native series with the bounds of the buckets, from the own agent as from others. The
// query of the page finds them there, and in the classic series that another Prometheus stores.
func TestWaitsAreStoredAsNativeHistograms(t *testing.T) {
	other := httptest.NewServer(&latencies{})
	defer other.Close()
	o := options(t.TempDir(), &logs{})
	o.Self, o.Interval, o.Targets = &latencies{}, 200*time.Millisecond, []string{strings.TrimPrefix(other.URL, "http://")}
	s, _ := start(t, o)
	ask := func(expr string) (found []float64) {
		var data struct{ Result []struct{ Value [2]any } }
		get(t, s.api(), "/query?query="+url.QueryEscape(expr), &data)
		for _, r := range data.Result {
			text, _ := r.Value[1].(string)
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, v)
		}
		return found
	}
	const query = "histogram_quantile(0.99, sum by (workload, instance) (rate(%[1]s[1m]))) or " +
		"histogram_quantile(0.99, sum by (workload, instance, le) (rate(%[1]s_bucket[1m])))"
	for _, name := range []string{"teescope_run_queue_latency_seconds", "sgx_load_back_seconds"} {
		expr := fmt.Sprintf(query, name)
		var got []float64
		for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
			if got = ask(expr); len(got) == 2 && !math.IsNaN(got[0]+got[1]) {
				break
			}
		}
		if len(got) != 2 || got[0] < 8.192e-06 || got[0] > 1.6384e-05 || got[1] != got[0] {
			t.Errorf("%s: the 99th percentiles are %v, want two from 8 to 16 us", name, got)
		}
	}
	for expr, want := range map[string]int{
		`{__name__=~"teescope_run_queue_latency_seconds_.*"}`: 0, `count_over_time(sgx_load_back_seconds_bucket[1h])`: 6,
	} {
		if got := ask(expr); len(got) != want {
			t.Errorf("%s has %d series, want %d", expr, len(got), want)
		}
	}
}
