/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The end of a process, and the thread that stands for it while it lives. */
#ifndef TEESCOPE_PROCESSES_H
#define TEESCOPE_PROCESSES_H

#include "slots.h"

/* Marks a process as ended. Returns false if it was already marked. Several threads may call it at the same time. */
static __noinline bool end_process(u32 tgid)
{
	u32 page = tgid / PIDS_PER_PAGE, at = tgid % PIDS_PER_PAGE, shift = 16 * (at & 1), i;
	struct pid_page *p = bpf_map_lookup_elem(&slot_of_pid, &page);
	u32 *pair; /* with the slot of a neighbour: there is no 16-bit compare-and-swap */

	if (!p)
		return true;
	pair = (u32 *)&p->slot[at & ~1];
	for (i = 0; i < 8; i++) { /* the neighbour may change meanwhile */
		u32 old = *(volatile u32 *)pair;
		u32 new = (old & ~(0xffff << shift)) | (u32)SLOT_ENDED << shift;

		if (old == new)
			return false;
		if (__sync_val_compare_and_swap(pair, old, new) == old)
			return true;
	}
	return true;
}

/* Reports whether a thread represents its process: it is the first one that does not exit. The first thread
 * of a process may exit before the others. It stays on the list, usually as the only one that exits. */
static __noinline bool stands_for_process(struct task_struct *task)
{
	struct task_struct *leader, *other;
	struct list_head *node;
	u32 i;

	if (!task)
		return false;
	leader = BPF_CORE_READ(task, group_leader);
	if (task == leader)
		return true;
	if (!(BPF_CORE_READ(leader, flags) & PF_EXITING))
		return false;
	node = BPF_CORE_READ(task, signal, thread_head.next);
	for (i = 0; i < 16; i++) {
		other = (void *)node - bpf_core_field_offset(struct task_struct, thread_node);
		if (other == task)
			return true;
		if (!(BPF_CORE_READ(other, flags) & PF_EXITING))
			return false;
		node = BPF_CORE_READ(node, next);
	}
	return false;
}

#endif
