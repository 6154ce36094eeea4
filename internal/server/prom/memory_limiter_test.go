// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// Near the limit, queries and new series are refused with the reason, and requests about the server are answered. When
// memory is free again, everything works as before.
func TestNearTheMemoryLimit(t *testing.T) {
	target := httptest.NewServer(once(func(w io.Writer) { series(w, "", 10) }))
	defer target.Close()
	u, err := url.Parse(target.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Interval, o.MemoryLimit = 200*time.Millisecond, 100<<20
	o.Endpoints = []Endpoint{{Job: "late", URL: u}}
	s := New(o)
	var live atomic.Uint64
	live.Store(81 << 20)
	s.memory.live, s.memory.collect = live.Load, func() {}
	run(t, s)

	a := ask(t, s.Handler(), httptest.NewRequest(http.MethodGet, "/api/v1/query?query=up", nil))
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" ||
		!strings.Contains(a.body.Error, "memory.limit is near: 81 of 100 MiB are in use; queries are refused until memory is free: try again in a moment, raise the limit") {
		t.Errorf("a query: %d %+v", a.status, a.body)
	}
	waittest.Until(t, "a target with the reason why its series are refused", func() bool {
		return strings.Contains(reasons(t, s, "job")["late"], "memory.limit is near: 81 of 100 MiB are in use; no new series are accepted")
	})
	if n := get(t, s.Handler(), "/status/runtimeinfo", nil); n != http.StatusOK {
		t.Errorf("the status: %d", n)
	}

	live.Store(79 << 20)
	waittest.Until(t, "the series of the target", func() bool {
		_, times, _ := samples(t, s, `wild{job="late"}[1m]`)
		return len(times) > 0
	})
}

// Memory in use at the last collection may be garbage by now.
func TestGarbageIsNotHeldAgainstQueries(t *testing.T) {
	p := newMemoryLimiter(100, 1)
	collections := 0
	p.live = func() uint64 { return uint64(90 - 50*collections) }
	p.collect = func() { collections++ }
	if p.near() || collections != 1 {
		t.Errorf("near after %d collections, although the first freed memory", collections)
	}
	p.live = func() uint64 { return 90 }
	for range 2 {
		if !p.near() || collections != 1 {
			t.Errorf("not near, or %d collections within a second", collections)
		}
	}
}

func TestQueriesAtOnceFitIntoTheLimit(t *testing.T) {
	for limit, want := range map[int64]struct{ running, samples int }{
		0: {maxRunning, maxSamples}, 64 << 20: {1, 256 << 10}, 256 << 20: {2, 512 << 10}, 1 << 40: {maxRunning, maxSamples},
	} {
		p := newMemoryLimiter(limit, 1)
		if p.running() != want.running || p.maxSamples() != want.samples {
			t.Errorf("of %d bytes %d queries get %d samples each, want %+v", limit, p.running(), p.maxSamples(), want)
		}
	}
}

// All targets together may send an eighth of the limit at once, and each at least leastBody.
func TestBodiesOfAllTargetsFitIntoTheLimit(t *testing.T) {
	for _, tt := range []struct {
		limit   int64
		targets int
		want    int64
	}{
		{0, 100, 16 << 20}, {64 << 20, 1, 8 << 20}, {1 << 40, 1, 16 << 20}, {256 << 20, 4, 8 << 20}, {256 << 20, 1000, leastBody},
		{16 << 20, 4, 2 << 20},
	} {
		if got := newMemoryLimiter(tt.limit, tt.targets).mostBody(16 << 20); got != tt.want {
			t.Errorf("of %d bytes each of %d targets may send %d at once, want %d", tt.limit, tt.targets, got, tt.want)
		}
	}
}

// live measures the real heap.
func TestLiveHeap(t *testing.T) {
	p := newMemoryLimiter(1<<40, 1)
	p.collect()
	before := p.live()
	held := make([]byte, 64<<20)
	p.collect()
	if grown := int64(p.live()) - int64(before); grown < 60<<20 {
		t.Errorf("64 MiB more are in use, measured are %d bytes", grown)
	}
	runtime.KeepAlive(held)
}

// A body of the largest size fits into a buffer of the next power of two.
func TestALargeBodyDoesNotDoubleItsBuffer(t *testing.T) {
	zeros, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zeros.Close()
	for _, limit := range []int64{bodyLimit, agentBodyLimit} {
		b := bytes.NewBuffer(make([]byte, 0, 1000)) // as the scraper
		if n, err := io.Copy(b, io.LimitReader(zeros, limit)); err != nil || n != limit {
			t.Fatalf("read %d bytes: %v", n, err)
		}
		if int64(b.Cap()) > limit+bytes.MinRead {
			t.Errorf("a body of %d bytes takes %d", limit, b.Cap())
		}
	}
}
