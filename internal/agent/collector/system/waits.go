// SPDX-License-Identifier: Apache-2.0

package system

import "math/bits"

// waitBucket returns the bucket of a wait for a CPU in nanoseconds, as bucket_of (bpf/include/log2.h) does.
func waitBucket(ns uint64) int { return min(bits.Len64(ns>>waitShift), waits-1) }
