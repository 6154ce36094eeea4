/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Reports to user space which processes have started or run another program, so that it need not read all of /proc again. */
#ifndef TEESCOPE_CHANGES_H
#define TEESCOPE_CHANGES_H

#include "system.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct change_ring);
} changes SEC(".maps");

/* User space lists all processes if more have changed than the ring has entries. */
static __always_inline void changed(u32 tgid)
{
	u32 only = 0;
	struct change_ring *c = bpf_map_lookup_elem(&changes, &only);

	if (c)
		c->tgid[__sync_fetch_and_add(&c->written, 1) & (CHANGES - 1)] = tgid;
}

#endif
