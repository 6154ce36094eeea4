// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/lib/clientname"
)

// Bounds of concurrent requests. A query may hold maxSamples and the text of its answer. A few at once keep two
// processors busy; the rest wait in a queue.
const (
	maxRunning = 4
	maxWaiting = 64
	maxWait    = 10 * time.Second
)

// concurrencyLimiter lets a bounded number of requests run and a bounded number wait. It answers 503 to further
// requests, and to those that have waited too long.
//
// One client cannot take all places. One place is kept free for a second client. The client with the fewest running
// requests is next. If the queue is full, a client with fewer waiting requests takes a place of the client with the
// most.
type concurrencyLimiter struct {
	next     http.Handler
	places   int
	patience time.Duration

	mu      sync.Mutex
	running map[string]int // by client
	queue   []*waiter      // the first has waited for the longest time
}

// waiter is a request that waits. Its channel receives whether it may run.
type waiter struct {
	client  string
	decided chan bool // holds one value
}

func newConcurrencyLimiter(next http.Handler, running int) *concurrencyLimiter {
	return &concurrencyLimiter{next: next, places: running, patience: maxWait, running: map[string]int{}}
}

// ServeHTTP implements http.Handler.
func (c *concurrencyLimiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	client := clientname.Of(r.RemoteAddr) // or the name that the HTTP server gave
	if !c.enter(r, client) {
		// The error type is the one of a query that times out in the queue of Prometheus.
		refuse(w, http.StatusServiceUnavailable, "timeout", fmt.Sprintf(
			"teescope is busy: it answers %d requests at once and more are waiting; "+
				"try again in a moment, or query a shorter time range, fewer series or a larger step", c.places))
		return
	}
	defer c.leave(client)
	c.next.ServeHTTP(w, r)
}

func (c *concurrencyLimiter) enter(r *http.Request, client string) bool {
	me := c.ask(client)
	if me == nil {
		return false
	}
	timeout := time.NewTimer(c.patience)
	defer timeout.Stop()
	select {
	case run := <-me.decided:
		return run
	case <-timeout.C:
	case <-r.Context().Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.queue, me); i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
		return false
	}
	return <-me.decided // it was decided meanwhile
}

// ask enqueues a request, which may run at once. It returns nil when the queue is full.
func (c *concurrencyLimiter) ask(client string) *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	me := &waiter{client: client, decided: make(chan bool, 1)}
	c.queue = append(c.queue, me)
	c.start()
	if len(c.queue) <= maxWaiting {
		return me
	}
	most := c.largest()
	if c.waiting(most) <= c.waiting(client) {
		c.queue = c.queue[:len(c.queue)-1]
		return nil
	}
	for i, w := range slices.Backward(c.queue) {
		if w.client == most {
			c.queue = slices.Delete(c.queue, i, i+1)
			w.decided <- false
			break
		}
	}
	return me
}

// largest returns the client with the most waiting requests.
func (c *concurrencyLimiter) largest() string {
	counts := map[string]int{}
	most := ""
	for _, w := range c.queue {
		if counts[w.client]++; counts[w.client] > counts[most] {
			most = w.client
		}
	}
	return most
}

func (c *concurrencyLimiter) waiting(client string) int {
	n := 0
	for _, w := range c.queue {
		if w.client == client {
			n++
		}
	}
	return n
}

func (c *concurrencyLimiter) leave(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[client]--; c.running[client] == 0 {
		delete(c.running, client)
	}
	c.start()
}

// start lets waiting requests run while there are places for them.
func (c *concurrencyLimiter) start() {
	for {
		next := -1
		for i, w := range c.queue {
			if c.mayRun(w.client) && (next < 0 || c.running[w.client] < c.running[c.queue[next].client]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := c.queue[next]
		c.queue = slices.Delete(c.queue, next, next+1)
		c.running[w.client]++
		w.decided <- true
	}
}

func (c *concurrencyLimiter) mayRun(client string) bool {
	all := 0
	for _, n := range c.running {
		all += n
	}
	return all < c.places && c.running[client] < max(1, c.places-1)
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
