// SPDX-License-Identifier: Apache-2.0

package system

import (
	"math"
	"math/bits"
)

// waitBucket returns the bucket of a wait for a CPU in nanoseconds, as add_wait (system.bpf.c) does.
func waitBucket(ns uint64) int { return min(bits.Len64(ns>>waitShift), waits-1) }

// distribution returns the waits of a row as a classic histogram: their number, their sum in seconds, and the number of
// waits up to each bound in seconds.
func (r *row) distribution() (n uint64, sum float64, upTo map[float64]uint64) {
	upTo = make(map[float64]uint64, waits-1)
	for i, in := range r.Waits {
		n += in
		if i < waits-1 {
			upTo[math.Ldexp(1e-9, waitShift+i)] = n
		}
	}
	return n, seconds(r.DelayNS), upTo
}
