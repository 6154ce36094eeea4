// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"time"
)

// Shares of the memory limit. The Go runtime fills memory up to the limit before it collects garbage. Only the memory
// in use after a collection shows whether the limit is enough.
const (
	// nearLimit is the share in use above which the collector would run most of the time.
	nearLimit = 0.8
	// queryShare is the share for the labels and chunks of all concurrent queries together, and sampleShare the one for
	// their samples and answers.
	queryShare  = 0.5
	sampleShare = 0.25
	// bytesPerSample is what a query needs for a sample that it holds (16), and for its text in the answer (up to 24),
	// which is copied when its buffer grows.
	bytesPerSample = 64
	// perQuery is what a query over 100,000 series needs for labels and chunks, before it holds any sample. Measured:
	// four such queries raised the memory in use from 200 to 315 MiB.
	perQuery = 128 << 20
	// leastBody is what every target may send, in bytes. An agent with 128 workloads sends less than a tenth of it.
	leastBody = 4 << 20
	// collectEvery is the minimum time between two forced collections.
	collectEvery = time.Second
	// atLimit is the share taken from the kernel at which running queries are ended, and watchEvery the time between two
	// looks at it. The Go runtime begins to collect without a pause below it. The estimates of package bound apply to
	// one query. This limit applies to all queries together and to everything else that uses memory.
	atLimit    = 15.0 / 16
	watchEvery = 20 * time.Millisecond
)

// memoryError is the cause of the end of a query that was ended because of the memory limit.
type memoryError struct{ reason string }

// Error implements error.
func (e *memoryError) Error() string {
	return e.reason + "; the query was ended: select fewer series, a shorter time range or fewer points, or raise the limit"
}

// memoryLimiter refuses queries and new series when the memory limit is near.
type memoryLimiter struct {
	limit   int64         // bytes; 0 is none
	targets int           // that are scraped at once
	live    func() uint64 // bytes in use at the last collection
	taken   func() uint64 // bytes taken from the kernel, with garbage and free ones
	collect func()

	mu        sync.Mutex
	collected time.Time

	watched sync.Mutex
	queries map[*context.CancelCauseFunc]struct{} // those that run; they are watched while there are any
}

func newMemoryLimiter(limit int64, targets int) *memoryLimiter {
	return &memoryLimiter{
		limit: limit, targets: targets, live: liveHeap, taken: takenMemory, collect: runtime.GC,
		queries: map[*context.CancelCauseFunc]struct{}{},
	}
}

func liveHeap() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// takenMemory is what the limit of the Go runtime is compared with.
func takenMemory() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

// near reports whether the memory limit is near. Memory in use at the last collection may be free by now. Without
// allocations no further collection runs, so near forces one.
func (l *memoryLimiter) near() bool {
	if l.limit == 0 || !l.above() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.collected) >= collectEvery {
		l.collect()
		l.collected = time.Now()
	}
	return l.above()
}

func (l *memoryLimiter) above() bool { return float64(l.live()) > nearLimit*float64(l.limit) }

// maxSamples returns how many samples one query may hold, so that all concurrent queries fit.
func (l *memoryLimiter) maxSamples() int {
	if l.limit == 0 {
		return maxSamples
	}
	return min(maxSamples, int(sampleShare*float64(l.limit)/bytesPerSample)/l.running())
}

// queryBytes returns the memory that one query may take besides its samples.
func (l *memoryLimiter) queryBytes() float64 {
	if l.limit == 0 {
		return maxQueryBytes
	}
	return min(maxQueryBytes, queryShare*float64(l.limit)/float64(l.running()))
}

// watch returns a context that ends with a *memoryError when the limit is reached, and a function to call when the query
// has ended.
func (l *memoryLimiter) watch(ctx context.Context) (context.Context, func()) {
	if l.limit == 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l.watched.Lock()
	defer l.watched.Unlock()
	l.queries[&cancel] = struct{}{}
	if len(l.queries) == 1 {
		go l.watchAll()
	}
	return ctx, func() {
		l.watched.Lock()
		defer l.watched.Unlock()
		delete(l.queries, &cancel)
		cancel(nil)
	}
}

// watchAll ends all queries when the limit is reached, and returns when none runs.
func (l *memoryLimiter) watchAll() {
	for {
		time.Sleep(watchEvery)
		l.watched.Lock()
		if len(l.queries) == 0 {
			l.watched.Unlock()
			return
		}
		if taken := l.taken(); float64(taken) > atLimit*float64(l.limit) {
			for cancel := range l.queries {
				(*cancel)(&memoryError{l.used(taken)})
			}
		}
		l.watched.Unlock()
	}
}

// mostBody returns how large the body of a scrape may be. The scraper holds it up to three times. All targets may send theirs
// at the same time. Together they get an eighth of the limit, unless that leaves too little for each.
func (l *memoryLimiter) mostBody(most int64) int64 {
	if l.limit == 0 {
		return most
	}
	return min(most, l.limit/8, max(leastBody, l.limit/8/int64(max(1, l.targets))))
}

// running returns how many queries may run at once.
func (l *memoryLimiter) running() int {
	if l.limit == 0 {
		return maxRunning
	}
	return int(min(maxRunning, max(1, l.limit/perQuery)))
}

// guard refuses queries while the limit is near. Requests about the server itself are still answered.
func (l *memoryLimiter) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		about := strings.HasPrefix(r.URL.Path, "/api/v1/status/") || strings.HasPrefix(r.URL.Path, "/api/v1/targets")
		if !about && l.near() {
			refuse(w, http.StatusServiceUnavailable, "unavailable", l.reason()+
				"; queries are refused until memory is free: try again in a moment, raise the limit, or scrape fewer series")
			return
		}
		ctx, done := l.watch(r.Context())
		defer done()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// refusal returns why new series are refused, or nil.
func (l *memoryLimiter) refusal() error {
	if !l.near() {
		return nil
	}
	return fmt.Errorf("%s; no new series are accepted: raise the limit, or scrape fewer series", l.reason())
}

func (l *memoryLimiter) reason() string { return l.used(l.live()) }

func (l *memoryLimiter) used(bytes uint64) string {
	return fmt.Sprintf("memory.limit is near: %d of %d MiB are in use", bytes>>20, l.limit>>20)
}
