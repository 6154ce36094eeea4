// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// The estimate of the memory that series take is compared with the heap. It may be too high, because it bounds.
func TestCostOfASeries(t *testing.T) {
	for name, shape := range map[string]struct {
		n    int
		text string // in one label
	}{"many": {50_000, "a"}, "usual": {25_000, strings.Repeat("a", 150)}, "long": {3000, strings.Repeat("l", 4000)}} {
		target := httptest.NewServer(once(func(w io.Writer) { series(w, shape.text, shape.n) }))
		defer target.Close()
		u, err := url.Parse(target.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		var log logtest.Log
		o := options(t.TempDir(), &log)
		o.Interval, o.Self = time.Second, nil
		target.Config.Handler.ServeHTTP(httptest.NewRecorder(), nil) // makes the body
		heap := newMemoryLimiter(0, 1)
		heap.collect()
		before := heap.live()
		o.Endpoints = []Endpoint{{Job: "wild", URL: u}}
		s, stop := start(t, o)
		waittest.Until(t, "the series", func() bool {
			_, _, values := samples(t, s, `scrape_samples_scraped{job="wild"}[1m]`)
			return len(values) >= 3 && values[0] == float64(shape.n)
		})
		estimated := int64(0)
		s.limiter.Load().accounts.each(func(_ accountKey, one account) { estimated += one.bytes() })
		// A scrape that runs holds its body too, and only adds. So the least of several looks is the memory of the series.
		// On a busy machine a scrape runs most of the time, so there are many looks before the estimate is called wrong.
		took := int64(math.MaxInt64)
		for look := 0; look < 3 || look < 100 && took > estimated+16<<20; look++ {
			for range 3 { // Pools keep their buffers for two collections.
				heap.collect()
			}
			took = min(took, int64(heap.live())-int64(before))
			time.Sleep(150 * time.Millisecond)
		}
		t.Logf("%s: %d series take %d bytes each, estimated %d", name, shape.n, took/int64(shape.n), estimated/int64(shape.n))
		if took > estimated+16<<20 || took < estimated/4 {
			t.Errorf("%s: %d MiB, estimated %d MiB", name, took>>20, estimated>>20)
		}
		stop()
	}
}

// A target that grows uses its reserve and what is shared. The reserves of the others stay.
func TestReservesOfOtherTargets(t *testing.T) {
	a := newAccounts(100<<20, 4) // 40 MiB, of which 5 are reserved for each target
	var wild, tame, another accountKey
	wild.job, tame.job, another.job = "wild", "tame", "another"
	fill := func(key accountKey) (n int, err error) {
		for ; err == nil; n++ {
			err = a.add(key, labels.FromStrings("id", fmt.Sprint(n)), 1<<40)
		}
		return n, err
	}
	n, err := fill(wild)
	if got := int64(n) * bytesPerSeries >> 20; got < 20 || got > 25 || !strings.Contains(err.Error(), "the limit of a target within memory.limit") {
		t.Errorf("the first target got %d MiB: %v", got, err)
	}
	for _, key := range []accountKey{tame, another} {
		n, _ = fill(key)
		if got := int64(n) * bytesPerSeries >> 20; got < 4 || got > 5 {
			t.Errorf("another target got %d MiB of its reserve", got)
		}
	}
}

// The labels are bounded without a memory limit too.
func TestLabelBytes(t *testing.T) {
	a := newAccounts(0, 1)
	long := labels.FromStrings("v", strings.Repeat("v", 1000))
	for range 9 {
		if err := a.add(accountKey{}, long, 10_000); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.add(accountKey{}, long, 10_000); err == nil || !strings.Contains(err.Error(), "labels of its series") {
		t.Errorf("ten times a thousand bytes: %v", err)
	}
	if err := a.add(accountKey{job: "b"}, long, 10_000); err != nil {
		t.Errorf("another target: %v", err)
	}
}
