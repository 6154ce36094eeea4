// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/teescope/teescope/internal/lib/trim"
)

// Soft limits of the Go heap, in bytes. They return the memory of a large query's peak. They are far above normal use, because a
// limit near the live heap makes the garbage collector run all the time. A server of many machines uses more: see [followHeap].
const (
	serverMemory = 512 << 20
	agentMemory  = 128 << 20
)

// gcPercent is half of Go's default. It trades CPU time for memory: the heap is small, and the memory of a watched
// machine belongs to its workloads.
const gcPercent = 50

// agentGC is for the agent, whose heap does not grow with the stored data.
const agentGC = 25

// supervisorGC is for the supervisor, which allocates almost nothing after its start.
const supervisorGC = 10

// collectorShare is the part of the configured limit that the Go runtime gets. The runtime exceeds its limit for a moment when
// queries allocate faster than it collects. The rest is a reserve for that.
const collectorShare = 7.0 / 8

// tuneMemory sets the configured memory limit, or the default limit if wanted is 0, and keeps unused pages of the program out of
// memory. percent is the argument of SetGCPercent. GOGC and GOMEMLIMIT in the environment take precedence over the defaults.
func tuneMemory(wanted, limit int64, percent int) {
	trim.Sparse()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	switch {
	case wanted > 0:
		debug.SetMemoryLimit(int64(collectorShare * float64(wanted)))
	case os.Getenv("GOMEMLIMIT") == "":
		debug.SetMemoryLimit(limit)
		followHeap(limit, &keptHeap{})
	}
}

// heapPeriod is the time for which memory must be in use to count as kept. Large queries and scrapes are shorter.
const heapPeriod = 30 * time.Second

// keptHeap finds how much of the heap stays in use. Its fields are the least memory that was in use in a period and in the one before.
type keptHeap struct {
	before, now int64
	began       time.Time
}

// add adds what is in use after a garbage collection, and returns what has stayed in use for a period.
func (k *keptHeap) add(live int64, at time.Time) int64 {
	if at.Sub(k.began) >= heapPeriod {
		k.before, k.now, k.began = k.now, live, at
	}
	k.now = min(k.now, live)
	return min(k.before, k.now)
}

// followHeap raises the soft limit to twice the memory that stays in use, and lowers it to least again. The database of 1,000 agents
// is larger than the limit. With a fixed one, the collector took half of the server's CPU time. Memory that is in use for a moment,
// such as that of large queries or of hostile targets, does not raise the limit.
func followHeap(least int64, k *keptHeap) {
	collected := &struct{ _ [64]byte }{} // large enough to be an allocation of its own
	runtime.AddCleanup(collected, func(k *keptHeap) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		debug.SetMemoryLimit(max(least, 2*k.add(int64(live[0].Value.Uint64()), time.Now()))) //nolint:gosec // bytes of memory
		followHeap(least, k)
	}, k)
}
