// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
)

// TestRestartsDuringIngest stops and starts a server again and again while it scrapes. A restart may lose the scrape that was
// running, and nothing that was stored before it.
func TestRestartsDuringIngest(t *testing.T) {
	const restarts = 4
	dir := t.TempDir()
	var log logtest.Log
	o := options(dir, &log)
	o.Interval = 500 * time.Millisecond
	counter := &exporter{} // counts its scrapes, so that each has another value
	o.Self = counter
	stored := map[float64]float64{} // times, by value
	interrupted := map[int]bool{}   // the last scrape before each stop
	for restart := range restarts + 1 {
		s, stop := start(t, o)
		var times, values []float64
		waittest.Until(t, "samples after a restart", func() bool {
			_, times, values = samples(t, s, "scrapes_total[1h]")
			if len(values) < len(stored)+3 {
				return false
			}
			for value, at := range stored {
				i := int(value) - 1
				for i = min(i, len(values)-1); i >= 0 && values[i] > value; i-- { //nolint:revive // finds the value
				}
				if i < 0 || values[i] != value || times[i] != at {
					t.Fatalf("restart %d: the sample %v at %v is lost", restart, value, at)
				}
			}
			for i, value := range values {
				if i > 0 && value <= values[i-1] {
					t.Fatalf("restart %d: %v follows %v", restart, value, values[i-1])
				}
				stored[value] = times[i]
			}
			return true
		})
		_, scraped, up := samples(t, s, `up[1h]`)
		for i := 1; i < len(values); i++ {
			within := func(at float64) bool { return times[i-1] < at && at < times[i] }
			missing := 0
			for value := int(values[i-1]) + 1; value < int(values[i]); value++ {
				if !interrupted[value] {
					missing++
				}
			}
			for j, at := range scraped {
				if up[j] == 0 && within(at) { // a busy machine
					missing--
				}
			}
			if missing > 0 {
				t.Errorf("after %d restarts %d scrapes are missing between %v and %v, beside those that were running at a restart or failed", restart, missing, values[i-1], values[i])
			}
		}
		stop()
		counter.mu.Lock()
		interrupted[counter.n] = true
		counter.mu.Unlock()
	}
}

// clocked is an agent whose clock is wrong: it states the starts of its counters by that clock, and also the times of its samples if it
// lies.
type clocked struct {
	off  time.Duration
	lies bool

	mu sync.Mutex
	n  int
}

func (c *clocked) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	now, stated := time.Now().Add(c.off), ""
	if c.lies {
		stated = fmt.Sprintf(" %.3f", float64(now.UnixMilli())/1000)
	}
	w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
	fmt.Fprintf(w, "# TYPE calls counter\ncalls_total{workload=\"w\"} %d%s\ncalls_created{workload=\"w\"} %.3f\n", 1000+c.n, stated, float64(now.Add(-time.Minute).UnixMilli())/1000)
	fmt.Fprintf(w, "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %.3f\n# EOF\n", float64(now.Add(-time.Minute).UnixMilli())/1000)
}

// TestAgentsWithAnotherClock scrapes agents whose clocks are a day ahead and behind, beside one with the right time, and two that state
// wrong times of their samples. The samples of all have the time of the server, and none has a time in the future or a counter that begins in it.
func TestAgentsWithAnotherClock(t *testing.T) {
	var log logtest.Log
	o := options(t.TempDir(), &log)
	o.Interval = 500 * time.Millisecond
	names := map[string]string{}
	for name, one := range map[string]*clocked{
		"right": {}, "ahead": {off: 24 * time.Hour}, "behind": {off: -24 * time.Hour},
		"stated ahead": {off: 9 * time.Minute, lies: true}, "stated behind": {off: -time.Hour, lies: true}, // Prometheus takes at most ten minutes ahead
	} {
		agent := httptest.NewServer(one)
		defer agent.Close()
		address := strings.TrimPrefix(agent.URL, "http://")
		names[name], o.Targets = address, append(o.Targets, address)
	}
	began := time.Now()
	s, _ := start(t, o)
	for name, address := range names {
		var times, values []float64
		waittest.Until(t, "samples of the agent with the clock "+name, func() bool {
			_, times, values = samples(t, s, fmt.Sprintf("calls_total{instance=%q}[2d]", address))
			return len(values) > 4
		})
		for i, at := range times {
			if when := time.UnixMilli(int64(at * 1000)); values[i] > 0 && (when.Before(began.Add(-time.Second)) || when.After(time.Now().Add(time.Second))) {
				t.Errorf("%s: a sample is of %v, want the time of the scrape", name, when)
			}
			if zero := values[i] == 0; zero && (i > 0 || name != "right") {
				t.Errorf("%s: sample %d is a zero of %v", name, i, at)
			}
		}
	}
	if ahead := aheadOfClock(s.db); ahead > tolerance {
		t.Errorf("the newest sample is %v ahead of the clock", ahead)
	}
	if strings.Contains(log.String(), "clock was set back") {
		t.Errorf("the log says that the clock was set back:\n%s", log.String())
	}
}
