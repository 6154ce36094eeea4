// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// Bounds of concurrent requests. A query may hold maxSamples and the text of its answer. A few at once keep two
// processors busy; the rest wait in a queue.
const (
	maxRunning = 4
	maxWaiting = 64
	maxWait    = 10 * time.Second
)

// maxQuery is the maximum length of a query, in bytes. The time that Prometheus needs to prepare a query grows with the
// square of its nesting, and does not count towards the query's timeout. A query of some megabytes overflows the stack,
// which ends the process.
const maxQuery = 16 << 10

// concurrencyLimiter lets a bounded number of requests run and a bounded number wait. It answers 503 to further
// requests, and to those that have waited too long.
type concurrencyLimiter struct {
	next     http.Handler
	running  chan struct{}
	waiting  atomic.Int64
	patience time.Duration
}

func newConcurrencyLimiter(next http.Handler, running int) *concurrencyLimiter {
	return &concurrencyLimiter{next: next, running: make(chan struct{}, running), patience: maxWait}
}

// ServeHTTP implements http.Handler.
func (c *concurrencyLimiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !c.enter(r) {
		// The error type is the one of a query that times out in the queue of Prometheus.
		refuse(w, http.StatusServiceUnavailable, "timeout", fmt.Sprintf(
			"teescope is busy: it answers %d requests at once and more are waiting; "+
				"try again in a moment, or query a shorter time range, fewer series or a larger step", cap(c.running)))
		return
	}
	defer func() { <-c.running }()
	c.next.ServeHTTP(w, r)
}

func (c *concurrencyLimiter) enter(r *http.Request) bool {
	select {
	case c.running <- struct{}{}:
		return true
	default:
	}
	defer c.waiting.Add(-1)
	if c.waiting.Add(1) > maxWaiting {
		return false
	}
	timeout := time.NewTimer(c.patience)
	defer timeout.Stop()
	select {
	case c.running <- struct{}{}:
		return true
	case <-timeout.C:
		return false
	case <-r.Context().Done():
		return false
	}
}

// shortQueries refuses queries whose text is too long.
func shortQueries(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			refuse(w, http.StatusBadRequest, "bad_data", "reading the parameters: "+err.Error())
			return
		}
		for _, query := range r.Form["query"] {
			if len(query) > maxQuery {
				refuse(w, http.StatusBadRequest, "bad_data", fmt.Sprintf(
					"the query has %d bytes and may have %d: split it into several", len(query), maxQuery))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// refuse answers in the error format of the Prometheus API, so that its clients understand it.
func refuse(w http.ResponseWriter, status int, kind, reason string) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": kind, "error": reason})
}
