/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Divides the places for counters of calls, for pairs, for transitions of threads and for threads whose calls are followed between
 * users and control groups. A process gets a place while its user and its control group each have fewer than are free, as in package tenant.
 * User space gives each user and group a number, and stores the counts from zero again from time to time, because it
 * removes what is no longer needed. */
#ifndef TEESCOPE_BOUNDARY_TENANTS_H
#define TEESCOPE_BOUNDARY_TENANTS_H

#include "boundary.h"

/* By enum limited and enum tenant: places that are taken. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, LIMITED *MAX_TENANTS);
	__type(key, u32);
	__type(value, u64);
} taken SEC(".maps");

/* The owners of processes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32); /* tgid */
	__type(value, struct owner);
} owners SEC(".maps");

/* Takes a place for a process, and returns whether there is one for it. */
static __always_inline bool take_place(u32 of, u64 places, u32 tgid)
{
	struct owner *owner = bpf_map_lookup_elem(&owners, &tgid);
	u32 user = owner ? owner->user : TENANT_UNKNOWN, group = owner ? owner->group : TENANT_ROOT;
	u32 all = of * MAX_TENANTS + TENANT_ALL, by_user = of * MAX_TENANTS + user,
	    by_group = of * MAX_TENANTS + group;
	u64 *sum = bpf_map_lookup_elem(&taken, &all);
	u64 *its = bpf_map_lookup_elem(&taken, &by_user);
	u64 *theirs = bpf_map_lookup_elem(&taken, &by_group);

	if (!sum || !its || !theirs)
		return false;
	if (user != TENANT_ROOT && *sum + *its >= places)
		return false;
	if (group != TENANT_ROOT && *sum + *theirs >= places)
		return false;
	__sync_fetch_and_add(sum, 1);
	__sync_fetch_and_add(its, 1);
	__sync_fetch_and_add(theirs, 1);
	return true;
}

#endif
