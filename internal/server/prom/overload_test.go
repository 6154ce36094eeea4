// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/lib/clientname"
	"github.com/teescope/teescope/internal/lib/logtest"
	"github.com/teescope/teescope/internal/lib/waittest"
	"github.com/teescope/teescope/internal/server/prom/bound"
)

// answered is the answer to a request.
type answered struct {
	status int
	header http.Header
	body   struct{ Status, ErrorType, Error string }
}

func ask(t *testing.T, h http.Handler, r *http.Request) answered {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	a := answered{status: w.Code, header: w.Header()}
	if w.Code != http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &a.body); err != nil {
			t.Errorf("%d %s: %v", w.Code, w.Body, err)
		}
	}
	return a
}

// from returns a request of one of several clients.
func from(client int) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.RemoteAddr = fmt.Sprintf("192.0.2.%d:4000", client)
	return r
}

func (c *concurrencyLimiter) counts() (running, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.running {
		running += n
	}
	return running, len(c.queue)
}

// busy returns a limiter in which the maximum number of requests run, until release is called.
func busy(t *testing.T, patience time.Duration) (c *concurrencyLimiter, release func()) {
	t.Helper()
	block, entered := make(chan struct{}), make(chan struct{}, maxRunning)
	c = newConcurrencyLimiter(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case entered <- struct{}{}:
		default: // only the first are waited for
		}
		<-block
	}), maxRunning)
	c.patience = patience
	for i := range maxRunning {
		go c.ServeHTTP(httptest.NewRecorder(), from(i))
	}
	for range maxRunning {
		<-entered
	}
	return c, func() { close(block) }
}

func TestWhoWaitsTooLongIsToldWhatToDo(t *testing.T) {
	c, release := busy(t, 20*time.Millisecond)
	defer release()
	a := ask(t, c, httptest.NewRequest(http.MethodGet, "/", nil))
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %v, want 503 and a Retry-After", a.status, a.header)
	}
	if a.body.ErrorType != "timeout" || !strings.Contains(a.body.Error, "try again in a moment") {
		t.Errorf("%+v", a.body)
	}
}

func TestWhoWaitsGetsATurn(t *testing.T) {
	c, release := busy(t, time.Minute)
	done := make(chan answered, maxWaiting)
	for range maxWaiting {
		go func() { done <- ask(t, c, httptest.NewRequest(http.MethodGet, "/", nil)) }()
	}
	waittest.Until(t, "a full queue", func() bool { _, waiting := c.counts(); return waiting == maxWaiting })
	if a := ask(t, c, httptest.NewRequest(http.MethodGet, "/", nil)); a.status != http.StatusServiceUnavailable {
		t.Errorf("one more than may wait: %d, want 503 at once", a.status)
	}
	release()
	for range maxWaiting {
		if a := <-done; a.status != http.StatusOK {
			t.Errorf("one that waited: %d %+v", a.status, a.body)
		}
	}
	// The requests that held the places end on their own. The end of the last one has no answer.
	waittest.Until(t, "no request running", func() bool { running, _ := c.counts(); return running == 0 })
}

func TestWhoIsGoneDoesNotWait(t *testing.T) {
	c, release := busy(t, time.Minute)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := ask(t, c, httptest.NewRequest(http.MethodGet, "/", nil).WithContext(ctx)); a.status != http.StatusServiceUnavailable {
		t.Errorf("%d", a.status)
	}
	if _, n := c.counts(); n != 0 {
		t.Errorf("%d still wait", n)
	}
}

// Queries nested a million times used to overflow the stack of the process, which cannot be recovered.
func TestLongQueriesAreRefused(t *testing.T) {
	var log logtest.Log
	s, _ := start(t, options(t.TempDir(), &log))
	form := func(query string) *http.Request {
		r := httptest.NewRequest(http.MethodPost, "/api/v1/query", strings.NewReader(url.Values{"query": {query}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return r
	}
	if a := ask(t, s.Handler(), form("up"+strings.Repeat(" ", bound.MaxText-2))); a.status != http.StatusOK {
		t.Errorf("the longest query: %d %+v", a.status, a.body)
	}
	for name, query := range map[string]string{
		"too long": "up" + strings.Repeat(" ", bound.MaxText-1),
		"nested":   strings.Repeat("abs(", 1_000_000) + "1" + strings.Repeat(")", 1_000_000),
		"negated":  strings.Repeat("-", 4_000_000) + "1",
	} {
		a := ask(t, s.Handler(), form(query))
		if a.status != http.StatusBadRequest || a.body.ErrorType != "bad_data" || !strings.Contains(a.body.Error, "the maximum is 16384") {
			t.Errorf("%s: %d %+v", name, a.status, a.body)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/api/v1/query", strings.NewReader("query=%zz"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if a := ask(t, s.Handler(), r); a.status != http.StatusBadRequest {
		t.Errorf("a broken form: %d %+v", a.status, a.body)
	}
}

// A query that would hold too many samples fails with the reason before it holds them. One with too many steps is not
// evaluated.
func TestCostlyQueriesEnd(t *testing.T) {
	var log logtest.Log
	s, _ := start(t, options(t.TempDir(), &log))
	waittest.Until(t, "a sample", func() bool {
		_, times, _ := samples(t, s, "scrapes_total[1m]")
		return len(times) > 0
	})
	series := make([]string, 20)
	for i := range series {
		series[i] = fmt.Sprintf(`label_replace(vector(1), "i", "%d", "", "")`, i)
	}
	query := url.QueryEscape("max_over_time((" + strings.Join(series, " or ") + ")[9d:1s])")
	a := ask(t, s.Handler(), httptest.NewRequest(http.MethodGet, "/api/v1/query?query="+query, nil))
	if a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body.Error, "too many samples") {
		t.Errorf("%d %+v", a.status, a.body)
	}
	query = url.QueryEscape("max_over_time(vector(1)[10d:100ms])")
	a = ask(t, s.Handler(), httptest.NewRequest(http.MethodGet, "/api/v1/query?query="+query, nil))
	if a.status != http.StatusBadRequest || !strings.Contains(a.body.Error, "use a larger step than 100ms") {
		t.Errorf("%d %+v", a.status, a.body)
	}
	points := "/api/v1/query_range?query=up&start=0&end=1000000&step=1"
	if a := ask(t, s.Handler(), httptest.NewRequest(http.MethodGet, points, nil)); a.status != http.StatusBadRequest || !strings.Contains(a.body.Error, "11,000") {
		t.Errorf("a million points: %d %+v", a.status, a.body)
	}
}

// One client never holds all places, and its queue gives way to a second client.
func TestOneClientLeavesAPlaceToOthers(t *testing.T) {
	const loud, quiet = 1, 2
	block, entered := make(chan struct{}), make(chan string, maxRunning)
	c := newConcurrencyLimiter(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		entered <- r.RemoteAddr
		<-block
	}), maxRunning)
	c.patience = time.Minute
	statuses := make(chan int, maxRunning+maxWaiting)
	for range maxRunning - 1 + maxWaiting {
		go func() { statuses <- ask(t, c, from(loud)).status }()
	}
	for range maxRunning - 1 {
		<-entered
	}
	waittest.Until(t, "a full queue", func() bool { _, waiting := c.counts(); return waiting == maxWaiting })
	if running, _ := c.counts(); running != maxRunning-1 {
		t.Errorf("%d requests of one client run", running)
	}
	done := make(chan int, 2)
	for range 2 {
		go func() { done <- ask(t, c, from(quiet)).status }()
	}
	if who := <-entered; who != from(quiet).RemoteAddr {
		t.Errorf("%s got the free place", who)
	}
	if status := <-statuses; status != http.StatusServiceUnavailable {
		t.Errorf("a request of the loud client: %d, want 503 in favour of the other client", status)
	}
	go func() {
		for range entered { //nolint:revive // the rest enters in any order
		}
	}()
	close(block)
	for range 2 {
		if status := <-done; status != http.StatusOK {
			t.Errorf("the other client: %d", status)
		}
	}
	for range maxRunning - 2 + maxWaiting {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("the loud client: %d", status)
		}
	}
	close(entered)
}

func TestLoopbackIsOneClient(t *testing.T) {
	for from, want := range map[string]string{"127.0.0.2:1": "127.0.0.1", "[::1]:1": "127.0.0.1", "[::ffff:127.1.2.3]:1": "127.0.0.1", "10.0.0.1:1": "10.0.0.1", "user 0": "user 0"} {
		if got := clientname.Of(from); got != want {
			t.Errorf("clientname.Of(%s) = %s, want %s", from, got, want)
		}
	}
}
