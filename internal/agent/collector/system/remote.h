/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Events of processes that need not be current. */
#ifndef TEESCOPE_SYSTEM_REMOTE_H
#define TEESCOPE_SYSTEM_REMOTE_H

#include "slots.h"

/* Finds the row of a process that need not be current, and touches it. */
static __always_inline struct row *row_of_process(u32 tgid)
{
	u16 *its = pid_slot(tgid);
	u32 slot = its && *its < slots ? *its : SLOT_UNKNOWN;
	struct cpu_state *state = this_cpu();
	u32 i;

	if (!state)
		return NULL;
	i = state->first_row + slot;
	touch(state, slot);
	return bpf_map_lookup_elem(&rows, &i);
}

static __always_inline int on_migrate(struct task_struct *task)
{
	struct row *row = row_of_process(task->tgid);

	if (row)
		row->migrations++;
	return 0;
}

/* The current process has exceeded the limit by an allocation. It may be another process than the victim. Up to Linux 6.9
 * the argument is the ID of the victim, later its task. If the kernel kills all processes of a cgroup (memory.oom.group),
 * each has an event. */
static __always_inline int on_oom_kill(u64 victim)
{
	struct task_struct *task = (void *)victim;
	u32 tgid = victim;
	struct row *row;

	if (bpf_core_field_exists(struct trace_event_raw_mark_victim___named, uid))
		tgid = BPF_CORE_READ(task, tgid);
	row = row_of_process(tgid);
	if (row)
		row->oom_kills++;
	return 0;
}

#endif
