// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/teescope/teescope/internal/lib/logtest"
)

// The test runs in seconds what a server does in hours at an interval of 5 s. It scrapes fifty times as often. The head
// keeps 4 s instead of two hours before it is written to a block.
const (
	soakInterval  = 100 * time.Millisecond
	soakBlock     = 4 * time.Second
	soakRetention = 20 * time.Second
	soakSeries    = 2000
)

// soakTime returns the duration of TestSoak. `make soak` sets TEESCOPE_SOAK.
func soakTime(t *testing.T) time.Duration {
	text := os.Getenv("TEESCOPE_SOAK")
	if text == "" {
		return 40 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 40*time.Second {
		t.Fatalf("TEESCOPE_SOAK=%s is not a duration of at least 40s", text)
	}
	return d
}

// counting answers each scrape with the number of scrapes so far, and with many further series.
type counting struct{ n atomic.Int64 }

func (c *counting) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	n := c.n.Add(1)
	fmt.Fprintf(w, "scrapes_total %d\n", n)
	for i := range soakSeries {
		fmt.Fprintf(w, "wild{id=\"%d\"} %d\n", i, n*int64(i)%977)
	}
}

// inUse returns the heap in use after a collection.
func inUse() uint64 {
	runtime.GC()
	return liveHeap()
}

// TestSoak runs many compactions of the head, truncations of the log and deletions of old blocks. No sample is lost or
// stored twice, and memory, files and goroutines do not grow.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes 40 s, in which it mostly waits; make test runs it")
	}
	var log logtest.Log
	o := options(t.TempDir(), &log)
	target := &counting{}
	o.Self, o.Interval, o.RetentionTime, o.block = target, soakInterval, soakRetention, soakBlock
	end := time.Now().Add(soakTime(t))
	s, stop := start(t, o)

	time.Sleep(soakRetention) // until the first block is deleted
	early := vitals(t, s)
	late := early
	var floor []uint64 // heap in use between compactions: the minimum of the newest values
	for time.Now().Before(end) {
		time.Sleep(5 * time.Second)
		checkUnbroken(t, s)
		late = vitals(t, s)
		floor = append(floor[max(0, len(floor)-2):], late.heap)
	}
	late.heap = slices.Min(floor)
	t.Logf("early %v, late %v, %d scrapes", early, late, target.n.Load())
	if n := mustCounter(t, o, "prometheus_tsdb_compactions_total"); n < 5 {
		t.Errorf("%v compactions", n)
	}
	if n := mustCounter(t, o, "prometheus_tsdb_head_truncations_total"); n < 5 {
		t.Errorf("%v truncations of the head", n)
	}
	for _, failures := range []string{
		"prometheus_tsdb_compactions_failed_total", "prometheus_tsdb_head_truncations_failed_total",
		"prometheus_tsdb_wal_truncations_failed_total", "prometheus_tsdb_out_of_order_samples_total",
		"prometheus_target_scrapes_sample_duplicate_timestamp_total", "prometheus_target_scrapes_sample_out_of_order_total",
	} {
		if n := mustCounter(t, o, failures); n != 0 {
			t.Errorf("%s is %v", failures, n)
		}
	}
	if late.heap > early.heap+early.heap/4+(2<<20) {
		t.Errorf("the heap in use has grown from %d to %d bytes", early.heap, late.heap)
	}
	if late.blocks > int(soakRetention/soakBlock)+3 || late.disk > 2*early.disk+(8<<20) {
		t.Errorf("old blocks stay: %v, at first %v", late, early)
	}
	if late.goroutines > early.goroutines+10 {
		t.Errorf("%d goroutines, at first %d", late.goroutines, early.goroutines)
	}
	stop()
}

// vital holds the numbers that must not grow.
type vital struct {
	heap       uint64
	blocks     int
	disk       int64
	goroutines int
}

func vitals(t *testing.T, s *Server) vital {
	t.Helper()
	v := vital{heap: inUse(), blocks: len(s.db.Blocks()), goroutines: runtime.NumGoroutine()}
	for _, b := range s.db.Blocks() {
		v.disk += b.Size()
	}
	return v
}

// checkUnbroken reads the data that the retention certainly keeps. Each scrape is stored once, in the head or in
// blocks, with all its series.
func checkUnbroken(t *testing.T, s *Server) {
	t.Helper()
	window := soakRetention - soakBlock
	at := fmt.Sprintf("[%ds] @ %.3f", int(window.Seconds()), float64(time.Now().Add(-time.Second).UnixMilli())/1000)
	_, _, values := samples(t, s, "scrapes_total"+at)
	_, _, up := samples(t, s, `up{job="teescope"}`+at)
	failed := 0
	for _, v := range up {
		failed += 1 - int(v)
	}
	// A scrape that timed out has no sample, and its up is 0.
	if len(values) != len(up)-failed {
		t.Errorf("%d scrapes are stored of %d that succeeded", len(values), len(up)-failed)
	}
	missing := 0
	for i := 1; i < len(values); i++ {
		if values[i] <= values[i-1] {
			t.Fatalf("scrape %v is followed by %v", values[i-1], values[i])
		}
		missing += int(values[i]-values[i-1]) - 1
	}
	if missing > failed {
		t.Errorf("%d scrapes are missing, and %d have failed", missing, failed)
	}
	if least := int(window/soakInterval) / 4; len(values) < least { // a busy machine scrapes less often; fewer scrapes would test too little
		t.Errorf("%d scrapes within %v, fewer than %d", len(values), window, least)
	}
	// At a time that is already in a block, each series has as many samples as the first.
	const query = "count(count_over_time(wild[8s] offset 6s) == scalar(count_over_time(scrapes_total[8s] offset 6s)))"
	var data struct {
		Result []struct{ Value [2]any }
	}
	get(t, s.Handler(), "/query?query="+url.QueryEscape(query), &data)
	if len(data.Result) != 1 || data.Result[0].Value[1] != fmt.Sprint(soakSeries) {
		t.Errorf("series without a gap: %v, want %d", data.Result, soakSeries)
	}
}

// mustCounter reads a counter that must exist. counter would return 0 for a misspelt name.
func mustCounter(t *testing.T, o Options, name string) float64 {
	t.Helper()
	families, err := o.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == name }) {
		t.Fatalf("there is no counter %s", name)
	}
	return counter(o.Registry, name)
}
