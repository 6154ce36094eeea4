// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/clock"
)

// Bounds of the CPU time that clients can make an agent spend on /metrics. A regular scraper (reserve) does not count:
// its interval is the choice of the operator.
const (
	// shareOfCore is the accounted CPU time for other clients, per second. What they really take is about 1 % of a
	// processor, because garbage collection after an answer and new connections are not accounted.
	shareOfCore = 0.003
	// burstOfCore is CPU time for the first requests after a pause, in seconds: about 60 scrapes.
	burstOfCore = 0.4
	// maxDelay is how long a request waits at most for its share. All requests that wait so long are served at the same
	// moment, so that they share a scrape.
	maxDelay = 2 * time.Second
	// maxDelayedOfAClient and maxDelayed are how many requests wait at once. Each further request is refused after the
	// time penalty. This slows down clients that retry immediately.
	maxDelayedOfAClient = 4
	maxDelayed          = 32
	penalty             = 5 * time.Second
	maxPenalties        = maxConnections / 2
)

// The CPU time of an answer besides the scrape, measured on a machine of 2020: reading the request, and copying to the
// socket. It is rounded up. A refusal needs a timer and often a new connection.
const (
	costOfAnswer   = 60 * time.Microsecond
	costOfRefusal  = 150 * time.Microsecond
	costOfMegabyte = 400 * time.Microsecond
)

// cpuTime is the CPU time of this process. A scrape runs in several goroutines, and on a busy machine it takes much longer
// than its CPU time, so the time that it takes says little about its cost.
func cpuTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now) // fails only with wrong arguments
	return time.Duration(now.Nano())
}

// gate delays requests for metrics of clients that ask too often. A nil gate delays none.
type gate struct {
	credit bucket
	began  time.Time

	mu        sync.Mutex
	delayed   map[string]int // by client
	waiting   int
	penalties int
}

func newGate() *gate {
	return &gate{credit: bucket{rate: shareOfCore, most: burstOfCore}, began: time.Now(), delayed: map[string]int{}}
}

// paySince takes the CPU time of the process since began from the share of other clients. If other work ran meanwhile, they
// pay for it too.
func (g *gate) paySince(began time.Duration) {
	if g != nil {
		g.pay(cpuTime() - began)
	}
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
	now := time.Now()
	delay := min(g.credit.wait(now), maxDelay-now.Sub(g.began)%maxDelay)
	if delay == 0 {
		return g, true
	}
	if !g.delay(conn.client) {
		g.punish(w, r, conn)
		return nil, false
	}
	defer g.delayedUntilNow(conn.client)
	defer func() { conn.held(time.Now()) }()
	return g, clock.Sleep(r.Context(), delay) == nil // otherwise the client has left
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
	full := g.penalties >= maxPenalties
	if !full {
		g.penalties++
	}
	g.mu.Unlock()
	if full {
		panic(http.ErrAbortHandler) // closes the connection
	}
	conn.add(-1, 0)
	_ = clock.Sleep(r.Context(), penalty) // the client may leave before
	conn.held(time.Now())
	conn.add(1, 0)
	g.mu.Lock()
	g.penalties--
	g.mu.Unlock()
	g.pay(costOfRefusal)
	w.Header().Set("Retry-After", "1")
	http.Error(w, fmt.Sprintf("Too many requests for metrics from %s: more than %d wait. Send at most one a second.",
		conn.client, maxDelayedOfAClient), http.StatusServiceUnavailable)
}
