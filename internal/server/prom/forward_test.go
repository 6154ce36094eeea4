// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	stale "github.com/prometheus/prometheus/model/value"
	prw "github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// scraped is a target whose counter says how often it was scraped, with a histogram, a gauge and a summary.
type scraped struct{ scrapes atomic.Int64 }

func (c *scraped) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Another program may still scrape this port, which was a closed target of it before. Its timeout is longer.
	if r.Header.Get("X-Prometheus-Scrape-Timeout-Seconds") != "0.1" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	n := c.scrapes.Add(1)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, `# HELP seen_total Scrapes.
# TYPE seen_total counter
seen_total{workload="redis"} %d
# TYPE level gauge
level -1.5
# TYPE wait_seconds histogram
wait_seconds_bucket{le="0.1"} 3
wait_seconds_bucket{le="0.5"} 5
wait_seconds_bucket{le="+Inf"} 9
wait_seconds_sum 12.5
wait_seconds_count 9
# TYPE pause_seconds summary
pause_seconds{quantile="0.5"} 0.25
pause_seconds_sum 4
pause_seconds_count 16
`, n)
}

// realReceiver is the receiver of a real Prometheus, of its own code, with a database. It refuses everything while it is away.
type realReceiver struct {
	db   *tsdb.DB
	url  *url.URL
	away atomic.Bool
	// refused counts requests while it was away.
	refused atomic.Int64
}

func newRealReceiver(t *testing.T) *realReceiver {
	t.Helper()
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	r, quiet := &realReceiver{db: db}, slog.New(slog.DiscardHandler)
	mux := http.NewServeMux()
	both := remote.MessageTypes{remote.WriteV1MessageType, remote.WriteV2MessageType}
	mux.Handle("/api/v1/write", prw.NewWriteHandler(quiet, prometheus.NewRegistry(), db, both, false, false, false))
	mux.Handle("/api/v1/otlp/v1/metrics", prw.NewOTLPWriteHandler(quiet, prometheus.NewRegistry(), db,
		func() config.Config { return config.DefaultConfig }, prw.OTLPOptions{LookbackDelta: time.Minute}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if r.away.Load() {
			r.refused.Add(1)
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, req)
	}))
	t.Cleanup(func() {
		server.Close()
		_ = db.Close() // the test is over
	})
	if r.url, err = url.Parse(server.URL); err != nil {
		t.Fatal(err)
	}
	return r
}

// series returns the values of the series with a name, by its other labels.
func (r *realReceiver) series(t *testing.T, name string) map[string][]float64 {
	t.Helper()
	q, err := r.db.Querier(0, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	out := map[string][]float64{}
	all := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", name))
	for all.Next() {
		ls := labels.NewBuilder(all.At().Labels()).Del("__name__").Labels().String()
		for it := all.At().Iterator(nil); it.Next() == chunkenc.ValFloat; {
			if _, v := it.At(); !stale.IsStaleNaN(v) {
				out[ls] = append(out[ls], v)
			}
		}
	}
	if all.Err() != nil {
		t.Fatal(all.Err())
	}
	return out
}

// natives returns the number of series with a name that are native histograms with bounds of their own.
func (r *realReceiver) natives(t *testing.T, name string) (n int) {
	t.Helper()
	q, err := r.db.Querier(0, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	all := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", name))
	for all.Next() {
		it := all.At().Iterator(nil)
		if kind := it.Next(); kind != chunkenc.ValHistogram && kind != chunkenc.ValFloatHistogram {
			continue
		}
		if _, h := it.AtFloatHistogram(nil); h.UsesCustomBuckets() {
			n++
		}
	}
	if all.Err() != nil {
		t.Fatal(all.Err())
	}
	return n
}

// forward runs a forwarder until stop is called.
func forward(t *testing.T, o Options) (f *Forwarder, stop func()) {
	t.Helper()
	f = NewForwarder(o)
	if err := f.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	return f, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := f.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestForwarders sends by each protocol to the receiver of a real Prometheus, which is away for a while, and restarts during the
// outage. Afterwards the receiver has each scrape that ended, once and in order, and the same values that the target has.
func TestForwarders(t *testing.T) {
	for protocol, path := range map[string]string{protocolV1: "/api/v1/write", protocolV2: "/api/v1/write", protocolOTLP: "/api/v1/otlp/v1/metrics"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			target, r, dir := &scraped{}, newRealReceiver(t), t.TempDir()
			agent := httptest.NewServer(target)
			defer agent.Close()
			var log logtest.Log
			options := func() Options {
				o := options(dir, &log)
				o.Interval, o.Self, o.Targets = 100*time.Millisecond, nil, []string{strings.TrimPrefix(agent.URL, "http://")}
				o.RemoteWrite = RemoteWrite{URLs: []*url.URL{r.url.JoinPath(path)}, Labels: map[string]string{"cluster": "eu"}, Protocol: protocol}
				return o
			}
			seen := func() (values []float64) {
				for ls, all := range r.series(t, "seen_total") {
					if !strings.Contains(ls, `cluster="eu"`) || !strings.Contains(ls, `workload="redis"`) || !strings.Contains(ls, `job="teescope"`) || !strings.Contains(ls, `instance="`+strings.TrimPrefix(agent.URL, "http://")) {
						t.Fatalf("the labels are %s", ls)
					}
					values = append(values, all...)
				}
				return values
			}
			_, stop := forward(t, options())
			waittest.Until(t, "the first samples", func() bool { return len(seen()) > 2 })
			r.away.Store(true)
			waittest.Until(t, "refused requests", func() bool { return r.refused.Load() > 0 && target.scrapes.Load() > 10 })
			stop()
			atRestart := target.scrapes.Load()
			f, stop := forward(t, options())
			waittest.Until(t, "scrapes after the restart", func() bool { return target.scrapes.Load() > atRestart+5 })
			if s := f.senders[0].Queue.State(); s.Samples == 0 || time.Since(s.Oldest) > time.Minute {
				t.Errorf("waiting: %+v", s)
			}
			r.away.Store(false)
			want := target.scrapes.Load()
			waittest.Until(t, "all samples of the outage", func() bool { all := seen(); return len(all) > 0 && all[len(all)-1] >= float64(want) })
			stop()
			// On a slow machine a scrape may pass its timeout after the target has counted it. It is stored as up=0. The scrape that
			// the stop has interrupted is not stored.
			failed := 0
			for _, ups := range r.series(t, "up") {
				for _, up := range ups {
					if up == 0 {
						failed++
					}
				}
			}
			last, missing := 0.0, 0
			for _, v := range seen() {
				if v <= last {
					t.Fatalf("%v follows %v: %v", v, last, seen())
				}
				missing += int(v - last - 1)
				if last < float64(atRestart) && float64(atRestart) <= v && v > last+1 {
					missing--
				}
				last = v
			}
			if missing > failed {
				t.Fatalf("%d scrapes are missing, and %d failed; the restart was after %d: %v", missing, failed, atRestart, seen())
			}
			for name, want := range map[string]float64{"level": -1.5, "wait_seconds_sum": 12.5, "wait_seconds_count": 9, "pause_seconds_sum": 4, "pause_seconds_count": 16, "pause_seconds": 0.25} {
				only(t, r, name, "", want)
			}
			for le, want := range map[string]float64{"0.1": 3, "0.5": 5, "+Inf": 9} {
				only(t, r, "wait_seconds_bucket", le, want)
			}
			for why, n := range f.senders[0].Queue.State().Dropped {
				if n != 0 {
					t.Errorf("%d samples were dropped: %s\n%s", n, why, log.String())
				}
			}
			if left, err := filepath.Glob(filepath.Join(dir, forwardDir, "*")); err != nil || len(left) != 1 {
				t.Errorf("directories: %v, %v", left, err)
			}
		})
	}
}

// only checks that all samples of the one series with a name have a value.
func only(t *testing.T, r *realReceiver, name, le string, want float64) {
	t.Helper()
	n := 0
	for ls, values := range r.series(t, name) {
		if le != "" && !strings.Contains(ls, `le="`+le+`"`) {
			continue
		}
		if n++; slices.ContainsFunc(values, func(v float64) bool { return v != want }) {
			t.Errorf("%s%s is %v, want %v", name, ls, values, want)
		}
	}
	if n != 1 {
		t.Errorf("%d series %s with le=%q: %v", n, name, le, r.series(t, name))
	}
}

// TestReceiversHaveNames has two receivers that differ in a parameter only, which is not shown.
func TestReceiversHaveNames(t *testing.T) {
	o := options(t.TempDir(), &logtest.Log{})
	for _, tenant := range []string{"a", "b"} {
		o.RemoteWrite.URLs = append(o.RemoteWrite.URLs, &url.URL{Scheme: "http", Host: "127.0.0.1:1", Path: "/write", RawQuery: "token=" + tenant})
	}
	f := NewForwarder(o)
	if err := f.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	if a, b := f.senders[0].Name, f.senders[1].Name; a != "http://127.0.0.1:1/write" || b != a+" (2)" {
		t.Errorf("%q and %q", a, b)
	}
}

// TestSamplesOfAReceiverThatIsRemovedAreCounted leaves samples for a receiver, and starts again with another one.
func TestSamplesOfAReceiverThatIsRemovedAreCounted(t *testing.T) {
	dir := t.TempDir()
	// dropped starts a forwarder with a receiver, and returns what its metrics say of the samples of others.
	dropped := func(receiver string, leave ...int) (n float64) {
		t.Helper()
		o := options(dir, &logtest.Log{})
		o.RemoteWrite.URLs = []*url.URL{{Scheme: "http", Host: "127.0.0.1:1", Path: receiver}}
		f := NewForwarder(o)
		if err := f.Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, samples := range leave {
			f.senders[0].Queue.Add([]byte("a request"), samples, time.Now())
		}
		n = -1
		if err := f.Collect(t.Context(), func(m prometheus.Metric) {
			var said dto.Metric
			if err := m.Write(&said); err != nil {
				t.Error(err)
			}
			if strings.Contains(m.Desc().String(), "dropped_samples") && strings.Contains(said.String(), "unconfigured") {
				n = said.GetCounter().GetValue()
			}
		}); err != nil {
			t.Error(err)
		}
		if err := f.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		return n
	}
	for i, step := range []struct {
		receiver string
		leave    []int
		want     float64
	}{
		{"first", []int{3, 4}, 0},
		{"first", nil, 0}, // they still wait
		{"second", nil, 7},
		{"second", nil, 0}, // counted once
	} {
		if n := dropped(step.receiver, step.leave...); n != step.want {
			t.Errorf("start %d: %v samples were dropped, want %v", i, n, step.want)
		}
	}
}

// TestHistogramsThatOTLPCannotSay are sent as the series that they have.
func TestHistogramsThatOTLPCannotSay(t *testing.T) {
	inf := math.Inf(1)
	for name, tt := range map[string]struct {
		bounds []otlpBucket
		count  float64
		want   bool
	}{
		"good":         {[]otlpBucket{{1, 2}, {inf, 3}}, 3, true},
		"infinite":     {[]otlpBucket{{1, 2}, {inf, inf}}, inf, false},
		"too many":     {[]otlpBucket{{inf, 1e300}}, 1e300, false},
		"twice":        {[]otlpBucket{{1, 2}, {1, 2}, {inf, 3}}, 3, false},
		"not a number": {[]otlpBucket{{math.NaN(), 2}, {inf, 3}}, 3, false},
	} {
		sum := 1.0
		h := otlpHist{of: forwarded{ls: labels.EmptyLabels()}, bounds: tt.bounds, sum: &sum, count: &tt.count}
		if _, ok := h.point(); ok != tt.want {
			t.Errorf("%s: %v", name, ok)
		}
	}
}

// TestPartialSuccess reads how many points a receiver of OTLP refuses in a good answer.
func TestPartialSuccess(t *testing.T) {
	why := "out of order " + strings.Repeat("x", 2000)
	part := textField(numberField(nil, 1, 7), 2, why)
	for name, tt := range map[string]struct {
		body []byte
		want int
	}{
		"all taken": {nil, 0}, "no part": {message(nil, 1, nil), 0}, "a warning": {message(nil, 1, textField(nil, 2, why)), 0},
		"some": {message(nil, 1, part), 7}, "cut": {message(nil, 1, part)[:1024], 7}, "JSON": {[]byte(`{"partialSuccess":{}}`), 0},
		"too many": {message(nil, 1, numberField(nil, 1, 1<<63)), math.MaxInt32},
	} {
		if got := otlpRefused(tt.body); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}
