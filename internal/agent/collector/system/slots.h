/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The maps, and how a process gets its slot: by its cgroup and the name of its program, when it starts, in the
 * kernel. User space gives the slots their names afterwards and takes back the ones that nobody uses.
 */
#ifndef TEESCOPE_SLOTS_H
#define TEESCOPE_SLOTS_H

#include "system.h"
#include "group.h"
#include "lost.h"

const volatile u32 slots = 1; /* rows of one CPU */
const volatile u32 cpus_possible = 1;
const volatile bool count_errors = false; /* watched processes' errors, by errno */
const volatile bool time_calls = false;	  /* time spent in each system call */

/* The maps are sized by user space before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* cpus * slots */
	__type(key, u32);
	__type(value, struct row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* cpus * slots with time_calls */
	__type(key, u32);
	__type(value, struct row_time);
} times SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* cpus */
	__type(key, u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* pid_max / PIDS_PER_PAGE */
	__type(key, u32);
	__type(value, struct pid_page);
} slot_of_pid SEC(".maps");

/* Of the slot of a watched process: the slot that its children get, that of the process's group. 0 of others. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots */
	__type(key, u32);
	__type(value, u64);
} base_of SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots */
	__type(key, u32);
	__type(value, struct gauge);
} gauges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* containers and units: their programs share a slot */
	__type(key, u64);
	__type(value, u8);
} whole_cgroups SEC(".maps");

/* A variable and not a map: reading it is one load. User space maps it as it does the maps. */
struct control told SEC(".data.controls");

/* Frequent events count now. While they are sampled, the window in which they do is a store of user space's, so
 * that it is the same for all, exact, and does not begin before user space has ended its work of attaching,
 * which keeps a CPU from the workloads. */
static __always_inline bool open_now(void)
{
	return !told.closed;
}

static __always_inline struct cpu_state *this_cpu(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpus, &cpu);
}

static __always_inline struct row *row_of(struct cpu_state *state)
{
	return state ? bpf_map_lookup_elem(&rows, &state->row) : NULL;
}

static __always_inline u16 *pid_slot(u32 tgid)
{
	u32 page = tgid / PIDS_PER_PAGE;
	struct pid_page *p = bpf_map_lookup_elem(&slot_of_pid, &page);

	return p ? &p->slot[tgid % PIDS_PER_PAGE] : NULL;
}

/* Finds the slot of a process from what it is now, and remembers it by process ID. */
static __noinline u32 assign(struct task_struct *leader)
{
	struct group_key key = {};
	u32 tgid = BPF_CORE_READ(leader, tgid), slot;
	u16 *by_pid = pid_slot(tgid);

	if (!by_pid) {
		lost(LOST_PIDS);
		return SLOT_OTHER;
	}
	if (BPF_CORE_READ(leader, flags) & PF_KTHREAD) {
		slot = tgid ? SLOT_KERNEL : SLOT_IDLE;
	} else {
		struct kernfs_node *node = kernfs_of(leader);

		key.cgroup = BPF_CORE_READ(node, id);
		if (!bpf_map_lookup_elem(&whole_cgroups, &key.cgroup))
			bpf_probe_read_kernel_str(key.comm, sizeof(key.comm), &leader->comm);
		slot = find_group(&key, node, tgid);
		if (slot == NO_GROUP) {
			lost(LOST_GROUPS);
			slot = SLOT_OTHER;
		}
	}
	*by_pid = slot;
	return slot;
}

#endif
