/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The maps, and the assignment of processes to slots. The kernel side assigns a slot when a process starts, by its
 * cgroup and program name. User space names the slots afterwards and frees unused ones.
 */
#ifndef TEESCOPE_SLOTS_H
#define TEESCOPE_SLOTS_H

#include "system.h"
#include "group.h"
#include "lost.h"
#include "program.h"

const volatile u32 slots = 1; /* rows of one CPU */
const volatile u32 cpus_possible = 1;
const volatile bool count_errors = false;	/* count errors of watched processes by errno */
const volatile bool time_calls = false;		/* measure the time spent in each system call */
const volatile u64 idle_calls[CALLS / 64] = {}; /* bits of calls in which threads wait for others */

/* User space sets the sizes of the maps before loading. */
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

/* By slot. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots */
	__type(key, u32);
	__type(value, struct watched_slot);
} watched_slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots */
	__type(key, u32);
	__type(value, struct gauge);
} gauges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* cgroups of containers and units, whose programs have one slot */
	__type(key, u64);
	__type(value, u8);
} whole_cgroups SEC(".maps");

/* A variable, because reading it is one load. User space maps it into memory like the maps. */
struct control control SEC(".data.controls");

/* Reports whether frequent events count now. While they are sampled, user space opens and closes the window by a store.
 * So the window is exact and the same for all programs, and it excludes the time that user space needs to attach them. */
static __always_inline bool open_now(void)
{
	return !control.closed;
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

/* Makes user space read a row. User space reads the row of a CPU's slot each time, until the CPU has another slot. So a
 * slot is touched when it becomes that of the CPU, and not at each event. Stores before this one must not come after it,
 * because user space may read the row between the two. */
static __always_inline void touch(struct cpu_state *state, u32 slot)
{
	asm volatile("" ::: "memory");
	state->touched[slot % MARKS] = 1;
}

/* The mark comes after the count. So user space, which reads it first, finds the count now or at the next reading. */
static __always_inline void mark_call(struct row *row, u32 call)
{
	asm volatile("" ::: "memory");
	row->called[call / CALLS_PER_MARK] = 1;
}

/* Counts a system call. Only the first one with its number needs a mark. */
static __always_inline void count_call(struct row *row, u32 call)
{
	if (!row->calls[call]++)
		mark_call(row, call);
}

/* Returns what belongs to the slot of a watched process, or NULL for another slot. */
static __always_inline struct watched_slot *watched_of(u32 slot)
{
	struct watched_slot *of = bpf_map_lookup_elem(&watched_slots, &slot);

	return of && of->base ? of : NULL;
}

static __always_inline u16 *pid_slot(u32 tgid)
{
	u32 page = tgid / PIDS_PER_PAGE;
	struct pid_page *p = bpf_map_lookup_elem(&slot_of_pid, &page);

	return p ? &p->slot[tgid % PIDS_PER_PAGE] : NULL;
}

/* Finds the slot of a process from its current cgroup and program, and stores it by process ID. The last threads of a
 * process that has ended get a slot that is not stored. */
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
			read_program(leader, (struct program_name *)key.comm);
		slot = find_group(&key, node, leader);
		if (slot == NO_GROUP) {
			lost(LOST_GROUPS);
			slot = SLOT_OTHER;
		}
	}
	if (*by_pid != SLOT_ENDED || !(BPF_CORE_READ(leader, flags) & PF_EXITING))
		*by_pid = slot;
	return slot;
}

#endif
