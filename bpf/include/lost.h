/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Counters of lost events. The including object has an enum whose last value is LOSSES. */
#ifndef TEESCOPE_LOST_H
#define TEESCOPE_LOST_H

#include "kernel.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LOSSES);
	__type(key, u32);
	__type(value, u64);
} losses SEC(".maps");

static __always_inline void lost(u32 what)
{
	u64 *n = bpf_map_lookup_elem(&losses, &what);

	if (n)
		__sync_fetch_and_add(n, 1);
}

#endif
