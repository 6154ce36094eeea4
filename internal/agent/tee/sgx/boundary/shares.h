/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Shares the places for pairs and for crossings of threads between tenants, which are users and control groups. A tenant
 * gets a place while it has fewer than are free, as in package tenant. User space gives each tenant a number, and stores the
 * counts anew from time to time, because it removes what is no longer needed. */
#ifndef TEESCOPE_BOUNDARY_SHARES_H
#define TEESCOPE_BOUNDARY_SHARES_H

#include "boundary.h"

/* By enum shared and enum share: places that are taken. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SHARED *SHARES);
	__type(key, u32);
	__type(value, u64);
} taken SEC(".maps");

/* The enum share of processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32); /* tgid */
	__type(value, u32);
} shares SEC(".maps");

/* Takes a place for a process, and returns whether there is one for it. */
static __always_inline bool take_place(u32 of, u64 places, u32 tgid)
{
	u32 *share = bpf_map_lookup_elem(&shares, &tgid), is = share ? *share : SHARE_UNKNOWN;
	u32 all = of * SHARES + SHARE_ALL, its = of * SHARES + is;
	u64 *sum = bpf_map_lookup_elem(&taken, &all), *n = bpf_map_lookup_elem(&taken, &its);

	if (!sum || !n || (is != SHARE_ROOT && *sum + *n >= places))
		return false;
	__sync_fetch_and_add(sum, 1);
	__sync_fetch_and_add(n, 1);
	return true;
}

#endif
