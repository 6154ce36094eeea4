// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"runtime/debug"

	"github.com/teescope/teescope/internal/lib/trim"
)

// Soft limits of the Go heap, in bytes. They are far above normal use, because a limit near the live heap makes the
// garbage collector run all the time. They return the memory of a large query's peak.
const (
	serverMemory = 512 << 20
	agentMemory  = 128 << 20
)

// Targets beyond manyTargets raise the soft limit of the server by targetMemory bytes each. An agent of 300 series keeps about
// 1 MiB of live heap in the server, with the summaries of its windows. Without this, 1,000 agents fill the limit, and the garbage
// collector takes all idle processors.
const (
	manyTargets  = 64
	targetMemory = 2 << 20
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
	if wanted > 0 {
		debug.SetMemoryLimit(int64(collectorShare * float64(wanted)))
		return
	}
	limitHeap(limit)
}

func limitHeap(limit int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

// limitByTargets returns a function that sets the default limit of a server for a number of targets. It does nothing if a memory
// limit is configured.
func limitByTargets(wanted int64) func(targets int) {
	return func(targets int) {
		if wanted == 0 {
			limitHeap(serverMemory + targetMemory*int64(max(0, targets-manyTargets)))
		}
	}
}
