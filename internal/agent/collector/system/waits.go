// SPDX-License-Identifier: Apache-2.0

package system

import (
	"math/bits"

	"github.com/teescope/teescope/internal/lib/syscalls"
)

// waitBucket returns the bucket of a wait for a CPU in nanoseconds, as bucket_of (bpf/include/log2.h) does.
func waitBucket(ns uint64) int { return min(bits.Len64(ns>>waitShift), waits-1) }

// idleCalls has the bits of the system calls in which threads wait for others (idle_calls in slots.h).
func idleCalls() (all [calls / 64]uint64) {
	for nr := range syscalls.Count {
		if syscalls.WaitsForOthers(syscalls.Name(nr)) {
			all[nr/64] |= 1 << (nr % 64)
		}
	}
	return all
}
