/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TEESCOPE_LOG2_H
#define TEESCOPE_LOG2_H

#include "kernel.h"

/* Returns the binary logarithm of a number, rounded down; 0 for 0. `half` is a power of two, and the number is below 2^(2 * half)
 * and 2^63. The processor cannot predict branches on durations, so the code has none: a subtraction borrows from the highest bit
 * if the number has bits above the shift.
 */
static __always_inline u32 log2_of(u64 n, u32 half)
{
	u64 log = 0;

#pragma unroll
	for (u32 shift = half; shift; shift >>= 1) {
		u64 above = ((1ULL << shift) - 1 - n) >> 63;

		asm volatile("" : "+r"(above)); /* keeps the compiler from making it a branch */
		above *= shift;
		n >>= above;
		log += above;
	}
	return log;
}

/* Returns the bucket of a duration. There are at most 31 buckets. The first one has durations below 2^shift nanoseconds, and each
 * bound is double the one before. The last bucket has all longer durations. */
static __always_inline u32 bucket_of(u64 ns, u32 shift, u32 buckets)
{
	u64 scaled = ns >> (shift - 1);

	if (scaled >> buckets)
		scaled = 1 << (buckets - 1);
	return log2_of(scaled | 1, 16);
}

#endif
