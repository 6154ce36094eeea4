// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Bounds of the CPU time that clients can make an agent spend on /metrics. A regular scraper (reserve) does not count:
// its interval is the choice of the operator.
const (
	// shareOfCore is the accounted CPU time for other clients, per second. What they really take is about 1 % of a
	// processor, because memory management, new connections and refusals are not accounted.
	shareOfCore = 0.003
	// burstOfCore is CPU time for the first requests after a pause, in seconds: about 60 scrapes.
	burstOfCore = 0.4
	// maxDelay is how long a request waits at most for its share.
	maxDelay = 2 * time.Second
	// maxDelayedOfAClient and maxDelayed are how many requests wait at once. Each further one is answered after penalty,
	// so that a client that repeats it at once does so rarely.
	maxDelayedOfAClient = 4
	maxDelayed          = 32
	penalty             = 5 * time.Second
	maxPenalties        = maxConnections / 2
)

// The CPU time of an answer besides the scrape, measured on a machine of 2020: reading the request, and copying to the
// socket. It is rounded up.
const (
	costOfAnswer   = 60 * time.Microsecond
	costOfMegabyte = 400 * time.Microsecond
)

// gate delays requests for metrics of clients that ask too often. A nil gate delays none.
type gate struct {
	credit bucket

	mu        sync.Mutex
	delayed   map[string]int // by client
	waiting   int
	penalties int
}

func newGate() *gate {
	return &gate{credit: bucket{rate: shareOfCore, most: burstOfCore}, delayed: map[string]int{}}
}

// pay takes CPU time from the share of other clients.
func (g *gate) pay(d time.Duration) {
	if g != nil {
		g.credit.take(time.Now(), d.Seconds())
	}
}

// enter waits until a request may be served, and returns the gate that pays for it: none for a regular scraper. If
// admitted is false, it has answered.
func (g *gate) enter(w http.ResponseWriter, r *http.Request) (payer *gate, admitted bool) {
	conn := connectionOf(r)
	if g == nil || conn == nil || conn.scrapes(time.Now()) {
		return nil, true
	}
	delay := min(g.credit.wait(time.Now()), maxDelay)
	if delay == 0 {
		return g, true
	}
	if !g.delay(conn.client) {
		g.punish(w, r, conn)
		return nil, false
	}
	defer g.delayedUntilNow(conn.client)
	return g, sleep(r, delay)
}

// delay counts a waiting request. It returns false if too many wait.
func (g *gate) delay(client string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.delayed[client] >= maxDelayedOfAClient || g.waiting >= maxDelayed {
		return false
	}
	g.delayed[client]++
	g.waiting++
	return true
}

func (g *gate) delayedUntilNow(client string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
	if g.delayed[client]--; g.delayed[client] == 0 {
		delete(g.delayed, client)
	}
}

// punish refuses a request after a while. Meanwhile its connection may be closed for a new one.
func (g *gate) punish(w http.ResponseWriter, r *http.Request, conn *connection) {
	g.mu.Lock()
	crowded := g.penalties >= maxPenalties
	if !crowded {
		g.penalties++
	}
	g.mu.Unlock()
	if crowded {
		panic(http.ErrAbortHandler) // closes the connection
	}
	conn.add(-1, 0)
	sleep(r, penalty)
	conn.add(1, 0)
	g.mu.Lock()
	g.penalties--
	g.mu.Unlock()
	w.Header().Set("Retry-After", "1")
	http.Error(w, fmt.Sprintf("%s asks for metrics too often: more than %d requests wait. Ask at most every second.",
		conn.client, maxDelayedOfAClient), http.StatusServiceUnavailable)
}

// sleep returns false if the client leaves before.
func sleep(r *http.Request, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
