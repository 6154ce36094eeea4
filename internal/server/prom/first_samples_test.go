// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// scrapes returns a server that scrapes one target ten times a second. The target answers each request with its number.
func scrapes(t *testing.T, answer func(w http.ResponseWriter, request int64)) *Server {
	t.Helper()
	var requests atomic.Int64
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, requests.Add(1)) }))
	t.Cleanup(target.Close)
	u, err := url.Parse(target.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Self, o.Interval, o.Endpoints = nil, 100*time.Millisecond, []Endpoint{{Job: "wild", URL: u}}
	s, _ := start(t, o)
	return s
}

// A series that only one scrape has ends with the next scrape, and not after the five minutes of PromQL.
func TestASeriesOfOneScrapeEnds(t *testing.T) {
	s := scrapes(t, func(w http.ResponseWriter, request int64) {
		fmt.Fprintln(w, "kept 1")
		if request == 1 {
			fmt.Fprintln(w, "once 1\nonce{le=\"\"} 2")
		}
	})
	waittest.Until(t, "the end of the series", func() bool {
		_, _, had := samples(t, s, "once[5m]")
		_, _, later := samples(t, s, "kept[5m]")
		has, _, _ := samples(t, s, "once")
		return len(had) == 1 && had[0] == 1 && len(later) > 1 && has == nil
	})
}

// Samples with times of their own are stored from the first scrape on.
func TestSeveralSamplesOfANewSeries(t *testing.T) {
	now := time.Now().UnixMilli()
	s := scrapes(t, func(w http.ResponseWriter, _ int64) {
		fmt.Fprintf(w, "timed 1 %d\ntimed 2 %d\nold 1 %d\n", now-2000, now-1000, now-24*time.Hour.Milliseconds())
	})
	waittest.Until(t, "both samples", func() bool {
		_, _, values := samples(t, s, "timed[5m]")
		return len(values) == 2 && values[0] == 1 && values[1] == 2
	})
	if n := madeByOnly(s); n != 1 {
		t.Errorf("%d series are counted", n)
	}
}

// madeByOnly returns the number of new series that the only target has added to the database.
func madeByOnly(s *Server) (n int) {
	b := s.limiter.Load()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, one := range b.left {
		n += one.made
	}
	return n
}

// A scrape that fails at its end leaves nothing in the database, and no part of the limits of its target.
func TestARefusedScrapeLeavesNothing(t *testing.T) {
	s := scrapes(t, func(w http.ResponseWriter, request int64) {
		if request <= 2 {
			series(w, "", 10_000)
			fmt.Fprintln(w, "this is not a sample")
		}
		fmt.Fprintln(w, "kept 1")
	})
	waittest.Until(t, "the failures and two successes", func() bool {
		_, _, up := samples(t, s, "up[5m]")
		successes := 0
		for _, v := range up { // on a busy machine more of them fail
			successes += int(v)
		}
		return successes >= 2 && up[0] == 0 && up[1] == 0
	})
	if n := s.db.Head().NumSeries(); n > 100 {
		t.Errorf("the database has %d series", n)
	}
	if n := madeByOnly(s); n != 1 {
		t.Errorf("%d series are counted", n)
	}
	o := s.opts.Endpoints[0]
	if got := s.limiter.Load().accounts.sum(accountKey{o.Job, o.URL.Host}); got.series > 10 { // those about the scrape may be counted
		t.Errorf("%d series have a part of the memory", got.series)
	}
}
