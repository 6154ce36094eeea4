// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"fmt"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"time"
)

// Shares of the memory limit. The Go runtime fills memory up to the limit as a matter of course, and then
// collects; only what is in use after that says whether it is enough.
const (
	// nearLimit: with more in use than this, the collector would run most of the time.
	nearLimit = 0.8
	// queryShare is for all queries that run at once together.
	queryShare = 0.5
	// bytesPerSample is what a query needs for a sample that it holds, and for the text of its answer.
	bytesPerSample = 32
	// perQuery is what a query over a hundred thousand series needs for their labels and chunks, before it has
	// a sample: with four of them at once 200 MiB became 315.
	perQuery = 128 << 20
	// collectEvery bounds how often memory is collected to find out whether the limit is still near.
	collectEvery = time.Second
)

// pressure tells whether the memory limit is near.
type pressure struct {
	limit   int64         // bytes; 0 is none
	live    func() uint64 // bytes in use at the last collection
	collect func()

	mu        sync.Mutex
	collected time.Time
}

func newPressure(limit int64) *pressure {
	return &pressure{limit: limit, live: liveHeap, collect: runtime.GC}
}

func liveHeap() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// near tells whether the limit is. What was in use at the last collection may be free by now, and without
// work there is no next one: then one is made.
func (p *pressure) near() bool {
	if p.limit == 0 || !p.above() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.collected) >= collectEvery {
		p.collect()
		p.collected = time.Now()
	}
	return p.above()
}

func (p *pressure) above() bool { return float64(p.live()) > nearLimit*float64(p.limit) }

// maxSamples bounds what one query may hold, so that all of them together fit.
func (p *pressure) maxSamples() int {
	if p.limit == 0 {
		return maxSamples
	}
	return min(maxSamples, int(queryShare*float64(p.limit)/bytesPerSample)/p.running())
}

// running bounds how many queries run at once.
func (p *pressure) running() int {
	if p.limit == 0 {
		return maxRunning
	}
	return int(min(maxRunning, max(1, p.limit/perQuery)))
}

// guard refuses queries while the limit is near. What tells about the server itself is answered still.
func (p *pressure) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		about := strings.HasPrefix(r.URL.Path, "/api/v1/status/") || strings.HasPrefix(r.URL.Path, "/api/v1/targets")
		if !about && p.near() {
			refuse(w, http.StatusServiceUnavailable, "unavailable", p.reason()+
				"; no query is answered until there is room: ask again in a moment, or raise the limit, or scrape fewer series")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (p *pressure) reason() string {
	return fmt.Sprintf("memory.limit is near: %d of %d MiB are in use", p.live()>>20, p.limit>>20)
}
