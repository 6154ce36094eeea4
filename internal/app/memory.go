// SPDX-License-Identifier: Apache-2.0

package app

import (
	"os"
	"runtime/debug"
)

// Soft limits of the Go heap, in bytes. They are far above what is normal: a limit near the live
// heap makes the collector run all the time. They only keep the peak of a large query from staying.
const (
	serverMemory = 512 << 20
	agentMemory  = 128 << 20
)

// gcPercent trades processor time for memory: half of Go's default. teescope watches machines whose
// memory is for others, and its heap is small.
const gcPercent = 50

// tuneMemory sets what the user has set, or else the limit, but leaves GOGC and GOMEMLIMIT alone.
func tuneMemory(wanted, limit int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	switch {
	case wanted > 0:
		debug.SetMemoryLimit(wanted)
	case os.Getenv("GOMEMLIMIT") == "":
		debug.SetMemoryLimit(limit)
	}
}
