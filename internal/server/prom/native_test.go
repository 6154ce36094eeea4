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

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/packed"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// latencyNames are the distributions of workloads, of which the database stores all except the last one as native histograms.
var latencyNames = []string{"teescope_run_queue_latency_seconds", "teescope_block_io_latency_seconds", "teescope_syscall_duration_seconds", "sgx_load_back_seconds"}

// latencies is an agent with classic histograms, which grow by ten waits of 8 to 16 us with each scrape. As the other part of a
// program, it sends those that are stored as native ones as one line each.
type latencies struct {
	part    bool
	scrapes atomic.Int64
}

func (l *latencies) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	n := 10 * l.scrapes.Add(1)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	if l.part {
		w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0")
		defer fmt.Fprintln(w, "# EOF")
	}
	for _, name := range latencyNames {
		text := fmt.Sprintf("%s_bucket{workload=\"redis\",le=\"8.192e-06\"} 0\n%[1]s_bucket{workload=\"redis\",le=\"1.6384e-05\"} %d\n", name, n) +
			fmt.Sprintf("%s_bucket{workload=\"redis\",le=\"+Inf\"} %d\n%[1]s_sum{workload=\"redis\"} %v\n%[1]s_count{workload=\"redis\"} %[2]d\n", name, n, 1e-5*float64(n))
		if l.part && StoresAsNative(name) {
			text = string(packed.Pack([]byte(name), []byte(text)))
		}
		if StoresAsNative(name) { // as of a new workload
			text += name + "_created{workload=\"redis\"} 1000000000\n"
		}
		fmt.Fprintf(w, "# TYPE %s histogram\n%s", name, text)
	}
}

// The waits, requests and calls of a workload are one native series each with the bounds of the buckets, from the own agent as from others. The
// query of the page finds them there, and in the classic series that another Prometheus stores.
func TestWaitsAreStoredAsNativeHistograms(t *testing.T) {
	other := httptest.NewServer(&latencies{})
	defer other.Close()
	o := options(t.TempDir(), &logtest.Log{})
	o.Self, o.Interval, o.Targets = &latencies{part: true}, 200*time.Millisecond, []string{strings.TrimPrefix(other.URL, "http://")}
	s, _ := start(t, o)
	ask := func(expr string) (found []float64) {
		var data struct{ Result []struct{ Value [2]any } }
		get(t, s.api, "/query?query="+url.QueryEscape(expr), &data)
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
	for _, name := range latencyNames {
		expr := fmt.Sprintf(query, name)
		var got []float64
		waittest.Until(t, "two percentiles of "+name, func() bool {
			got = ask(expr)
			return len(got) == 2 && !math.IsNaN(got[0]+got[1])
		})
		if got[0] < 8.192e-06 || got[0] > 1.6384e-05 || got[1] != got[0] {
			t.Errorf("%s: the 99th percentiles are %v, want two from 8 to 16 us", name, got)
		}
	}
	for expr, want := range map[string]int{
		`{__name__=~"teescope_.*_seconds_(bucket|sum|count)", workload="redis"}`: 0, `count_over_time(sgx_load_back_seconds_bucket[1h])`: 6,
	} {
		if got := ask(expr); len(got) != want {
			t.Errorf("%s has %d series, want %d", expr, len(got), want)
		}
	}
}

// The histograms of an agent that lies: too many buckets, in the order that takes the most time, and counts that cannot be.
func TestWildHistogramsAreRefused(t *testing.T) {
	const name = "teescope_run_queue_latency_seconds"
	many := make([]string, nativeBucketLimit+1)
	for i := range many {
		many[i] = fmt.Sprintf("%s_bucket{le=\"%d\"} 0\n", name, len(many)-i)
	}
	end := fmt.Sprintf("%s_sum 0\n%[1]s_count 0\n", name)
	for what, tt := range map[string]struct {
		lines, reason string
	}{
		"as many as allowed": {strings.Join(many[1:], "") + end, ""},
		"one more":           {strings.Join(many, "") + end, "more than 320 buckets"},
		"falling counts":     {name + "_bucket{le=\"1\"} 5\n" + name + "_bucket{le=\"2\"} 4\n" + end, "cumulative"},
		"no number":          {name + "_bucket{le=\"x\"} 5\n" + end, "not a number"},
		"no end":             {many[0] + many[1], ""},
	} {
		app := storage.AppenderV2(&nativeAppender{AppenderV2: appended{}, as: StoresAsNative})
		var err error
		for _, line := range strings.Split(strings.TrimSpace(tt.lines), "\n") {
			series, value, _ := strings.Cut(line, " ")
			ls := []string{"workload", "w"}
			metric, bound, is := strings.Cut(series, "{le=\"")
			if is {
				ls = append(ls, "le", strings.TrimSuffix(bound, "\"}"))
			}
			v, _ := strconv.ParseFloat(value, 64)
			if _, err = app.Append(0, labels.FromStrings(append(ls, "__name__", metric)...), 0, 1, v, nil, nil, storage.AppendV2Options{}); err != nil {
				break
			}
		}
		if (err == nil) != (tt.reason == "") || err != nil && !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s: %v, want %q", what, err, tt.reason)
		}
	}
}

// Lines of whole histograms from an agent that lies.
func TestWildLinesAreRefused(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat("1,", nativeBucketLimit+1), ",")
	for what, tt := range map[string]struct{ bounds, counts, reason string }{
		"valid": {"1,+Inf", "2,3", ""}, "too many": {many, many, "cannot be read"}, "falling counts": {"1,2,+Inf", "3,2,3", "cumulative"},
		"no text": {"", "", "cannot be read"}, "no number": {"x,+Inf", "1,3", "cannot be read"}, "another count": {"1,+Inf", "3,7", "count"},
	} {
		app := storage.AppenderV2(&nativeAppender{AppenderV2: appended{}, as: StoresAsNative})
		e := exemplar.Exemplar{Labels: labels.FromStrings("le", tt.bounds, "n", tt.counts), Value: 1}
		ls := labels.FromStrings("__name__", "teescope_run_queue_latency_seconds", "workload", "w")
		_, err := app.Append(0, ls, 0, 1, 3, nil, nil, storage.AppendV2Options{Exemplars: []exemplar.Exemplar{e}})
		if (err == nil) != (tt.reason == "") || err != nil && !strings.Contains(err.Error(), tt.reason) {
			t.Errorf("%s: %v, want %q", what, err, tt.reason)
		}
	}
}

// appended accepts everything.
type appended struct{ storage.AppenderV2 }

func (appended) Append(storage.SeriesRef, labels.Labels, int64, int64, float64, *histogram.Histogram, *histogram.FloatHistogram, storage.AppendV2Options) (storage.SeriesRef, error) {
	return 1, nil
}

// Version 1.0 of remote write has no native histograms with the bounds of these. So a server that sends it stores their classic series,
// and these are sent. With version 2.0 the native ones are sent.
func TestHistogramsOfWorkloadsAreSent(t *testing.T) {
	const name = "teescope_run_queue_latency_seconds"
	for protocol, native := range map[string]bool{protocolV1: false, protocolV2: true} {
		t.Run(protocol, func(t *testing.T) {
			other := httptest.NewServer(&latencies{})
			defer other.Close()
			r := newRealReceiver(t)
			o := options(t.TempDir(), &logtest.Log{})
			o.Self, o.Interval, o.Targets = &latencies{part: native}, 200*time.Millisecond, []string{strings.TrimPrefix(other.URL, "http://")}
			o.RemoteWrite = RemoteWrite{URLs: []*url.URL{r.url.JoinPath("/api/v1/write")}, Protocol: protocol}
			s, _ := start(t, o)
			wantBuckets, wantNative := 6, 0
			if native {
				wantBuckets, wantNative = 0, 2
			}
			waittest.Until(t, "the histograms of two machines", func() bool {
				return len(r.series(t, name+"_bucket")) == wantBuckets && r.natives(t, name) == wantNative
			})
			if _, times, _ := samples(t, s, name+`_bucket{le="+Inf",instance="here"}[1h]`); (len(times) > 0) == native {
				t.Errorf("the database has %d classic samples", len(times))
			}
			if starts := r.series(t, name+"_created"); len(starts) > 0 {
				t.Errorf("starts are series: %v", starts)
			}
		})
	}
}

// A native series ends when its workload does.
func TestNativeSeriesEnd(t *testing.T) {
	var gone atomic.Bool
	waits := &latencies{part: true}
	o := options(t.TempDir(), &logtest.Log{})
	o.Interval = 200 * time.Millisecond
	o.Self = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			fmt.Fprintln(w, "other 1")
			return
		}
		waits.ServeHTTP(w, r)
	})
	s, _ := start(t, o)
	present := func() bool {
		var data struct{ Result []any }
		get(t, s.api, "/query?query=teescope_run_queue_latency_seconds", &data)
		return len(data.Result) > 0
	}
	waittest.Until(t, "a native series", present)
	// Its first sample is stored after the scraper was given no series: see startsAppender. The second one is marked.
	waittest.Until(t, "two samples", func() bool {
		var data struct{ Result []any }
		get(t, s.api, "/query?query="+url.QueryEscape("count_over_time(teescope_run_queue_latency_seconds[1m]) >= 2"), &data)
		return len(data.Result) > 0
	})
	gone.Store(true)
	waittest.Until(t, "its end", func() bool { return !present() })
}
