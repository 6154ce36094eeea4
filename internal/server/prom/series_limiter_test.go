// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/storage"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// series writes n series whose labels have a prefix.
func series(w io.Writer, prefix string, n int) {
	for i := range n {
		fmt.Fprintf(w, "wild{id=\"%s%07d\"} 1\n", prefix, i)
	}
}

// once serves a body that is made at the first request, so that the test measures only the scraper.
func once(make func(io.Writer)) http.HandlerFunc {
	body := sync.OnceValue(func() []byte {
		var b bytes.Buffer
		make(&b)
		return b.Bytes()
	})
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(body()) }
}

// wildTargets returns targets that could exhaust a server's memory, and the expected reasons.
func wildTargets(elsewhere string) map[string]struct {
	handler http.HandlerFunc
	reason  string
} {
	type target = struct {
		handler http.HandlerFunc
		reason  string
	}
	var asked atomic.Int64
	bomb := once(func(w io.Writer) {
		z := gzip.NewWriter(w)
		defer z.Close()
		for range 100 {
			_, _ = z.Write(bytes.Repeat([]byte("\n"), 1<<20))
		}
	})
	return map[string]target{
		"large": {func(w http.ResponseWriter, _ *http.Request) {
			comment := append(bytes.Repeat([]byte("#"), 1<<20-1), '\n')
			for range 100 {
				if _, err := w.Write(comment); err != nil {
					return
				}
			}
		}, "body size limit exceeded"},
		"bomb": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			bomb(w, r)
		}, "body size limit exceeded"},
		"endless": {once(func(w io.Writer) { series(w, "", 1_000_000) }), "body size limit exceeded"},
		"many":    {once(func(w io.Writer) { series(w, "", sampleLimit+1) }), "sample limit exceeded"},
		"labelled": {once(func(w io.Writer) {
			fmt.Fprint(w, "wild{")
			for i := range 1_000_000 {
				fmt.Fprintf(w, "l%07d=\"v\",", i)
			}
			fmt.Fprint(w, "} 1\n")
		}), "label_limit exceeded"},
		"longname": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "wild{%s=\"\"} 1\nwild{%[1]s=\"v\"} 1\n", strings.Repeat("n", labelNameLimit+1))
		}, "label_name_length_limit exceeded"},
		"longvalue": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "wild{n=%q} 1\n", strings.Repeat("v", labelValueLimit+1))
		}, "label_value_length_limit exceeded"},
		"changing": {func(w http.ResponseWriter, _ *http.Request) {
			series(w, fmt.Sprint(asked.Add(1), "-"), newSeriesLimit/2+1)
		}, "new series within 2h0m0s: check whether a label of the target contains times, IDs or addresses"},
		"roundabout": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
		}, "server returned HTTP status 302 Found"},
		"pointer": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusMovedPermanently)
		}, "server returned HTTP status 301 Moved Permanently"},
	}
}

// reasons returns why the last scrapes of the targets failed, by a label. "" means no failure.
func reasons(t *testing.T, s *Server, label string) map[string]string {
	t.Helper()
	var data struct {
		ActiveTargets []struct {
			Labels    map[string]string
			LastError string
		}
	}
	get(t, s.Handler(), "/targets", &data)
	out := map[string]string{}
	for _, target := range data.ActiveTargets {
		out[target.Labels[label]] = target.LastError
	}
	return out
}

// Each wild target is down with the reason. The other targets continue, and the database has no additional series.
func TestWildTargets(t *testing.T) {
	visited := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect was followed")
	}))
	defer visited.Close()
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Interval = 2 * time.Second
	all := wildTargets(visited.URL)
	for name, target := range all {
		server := httptest.NewServer(target.handler)
		defer server.Close()
		u, err := url.Parse(server.URL + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		o.Endpoints = append(o.Endpoints, Endpoint{Job: name, URL: u})
	}
	tame := httptest.NewServer(&exporter{})
	defer tame.Close()
	u, err := url.Parse(tame.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	o.Endpoints = append(o.Endpoints, Endpoint{Job: "tame", URL: u})
	s, _ := start(t, o)
	for name, target := range all {
		waittest.Until(t, name+" to fail because of "+target.reason, func() bool {
			return strings.Contains(reasons(t, s, "job")[name], target.reason)
		})
	}
	for name := range all {
		// "changing" was up once: its first series were below its limit. The reason of a scrape is visible before its
		// samples are.
		waittest.Until(t, "up of "+name+" to be 0", func() bool {
			_, _, values := samples(t, s, fmt.Sprintf("up{job=%q}[1m]", name))
			return len(values) > 0 && values[len(values)-1] == 0
		})
	}
	for _, job := range []string{"tame", "teescope"} {
		// On a busy machine single scrapes may be late.
		waittest.Until(t, job+" to be up for four scrapes", func() bool {
			_, _, values := samples(t, s, fmt.Sprintf("up{job=%q}[%s]", job, 5*o.Interval))
			return len(values) >= 4 && !slices.Contains(values, 0) && reasons(t, s, "job")[job] == ""
		})
	}
	// Only one of the targets can add series, up to its limit.
	if n := s.db.Head().NumSeries(); n > newSeriesLimit+1000 {
		t.Errorf("the database holds %d series", n)
	}
}

// An agent may send more than other targets, but not without limit.
func TestAgentsMaySendMore(t *testing.T) {
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Self, o.Interval = nil, 10*time.Second
	targets := map[string]string{} // by instance: the reason why its scrape fails
	for n, reason := range map[int]string{agentSampleLimit: "", agentSampleLimit + 1: "sample limit exceeded"} {
		server := httptest.NewServer(once(func(w io.Writer) { series(w, "", n) }))
		defer server.Close()
		address := strings.TrimPrefix(server.URL, "http://")
		o.Targets, targets[address] = append(o.Targets, address), reason
	}
	s, _ := start(t, o)
	for address, reason := range targets {
		up := map[string]float64{"": 1, "sample limit exceeded": 0}[reason]
		waittest.Until(t, "a scrape of each", func() bool {
			_, _, values := samples(t, s, fmt.Sprintf("up{instance=%q}[1m]", address))
			// The reason is set shortly after the sample is stored.
			return len(values) > 0 && values[len(values)-1] == up && reasons(t, s, "instance")[address] == reason
		})
	}
}

func TestLimitComesBack(t *testing.T) {
	b := newSeriesLimiter(nil, newMemoryLimiter(0, 1), newAccounts(0, 2))
	now := time.Now()
	b.now = func() time.Time { return now }
	for i := range newSeriesLimit {
		if err := b.spend("one", newSeriesLimit); err != nil {
			t.Fatalf("series %d: %v", i, err)
		}
	}
	if b.spend("one", newSeriesLimit) == nil {
		t.Error("a target above its limit may add series")
	}
	if err := b.spend("another", newSeriesLimit); err != nil {
		t.Errorf("another target is also limited: %v", err)
	}
	now = now.Add(newSeriesWindow)
	if err := b.spend("one", newSeriesLimit); err != nil {
		t.Errorf("in the next window: %v", err)
	}
}

// The scraper's own samples about a scrape are never refused. A target cannot send any that look like them.
func TestReportsAreRecognised(t *testing.T) {
	for name, want := range map[string]bool{"up\xff": true, "scrape_series_added\xff": true, "up": false, "": false} {
		if _, is := report(storage.AppendV2Options{MetricFamilyName: name}); is != want {
			t.Errorf("report(%q) = %v", name, is)
		}
	}
}
