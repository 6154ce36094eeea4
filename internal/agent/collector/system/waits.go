// SPDX-License-Identifier: Apache-2.0

package system

import (
	"math/bits"

	"github.com/teescope/teescope/internal/lib/metric"
)

// waitBucket returns the bucket of a wait for a CPU in nanoseconds, as bucket_of (bpf/include/log2.h) does.
func waitBucket(ns uint64) int { return min(bits.Len64(ns>>waitShift), waits-1) }

// emitWaits emits the distribution of the waits of a subject for a CPU.
func (e *emission) emitWaits(s subject, emit emitFunc) {
	upTo, n := metric.Cumulated(s.total.Waits[:])
	emit(e.families.latency.of(s).Distribution(s.began, upTo, n, seconds(s.total.DelayNS), s.labels...))
}
