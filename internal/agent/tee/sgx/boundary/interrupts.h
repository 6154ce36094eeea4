/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Counts why threads leave enclaves asynchronously (AEX), by process. */
#ifndef TEESCOPE_INTERRUPTS_H
#define TEESCOPE_INTERRUPTS_H

enum { TICK_NS = 10000000 };

/* Processes with an enclave. User space adds them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32); /* tgid */
	__type(value, struct interrupted);
} interrupted SEC(".maps");

/* For threads of processes with breakpoints. LRU, because nothing removes the threads that end. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct thread_key);
	__type(value, struct left);
} left SEC(".maps");

/* Returns the interval in which ENCLUs with breakpoints in a process are counted now, or 0. */
static __always_inline u64 counts_at(u32 door, void *map, u32 tgid)
{
	u64 *cookie = bpf_map_lookup_elem(&breakpoint, &door);
	struct file_state *state;
	u32 file;

	if (!cookie || !bpf_map_lookup_elem(map, &tgid))
		return 0;
	file = COOKIE_FILE(*cookie);
	state = bpf_map_lookup_elem(&files, &file);
	return state ? state->open : 0;
}

/* A later thread may have the same ID. */
static __always_inline struct thread_key this_thread(void)
{
	struct task_struct___gs *task = (void *)bpf_get_current_task();
	struct thread_key key = {.tid = (u32)bpf_get_current_pid_tgid()};

	key.start = BPF_CORE_READ(task, start_boottime);
	return key;
}

/* Stores why the current thread has left its enclave, until it resumes. Events before that have not hit the enclave. A record of
 * an earlier interval is replaced, because the thread may have resumed since.
 */
static __always_inline void leave_by(u32 cause, u32 tgid)
{
	struct left new = {.cause = 1 + cause}, *l;
	struct thread_key key;

	new.interval[DOOR_VDSO] = counts_at(DOOR_VDSO, &crossed, tgid);
	new.interval[DOOR_OWN] = counts_at(DOOR_OWN, &crossed_own, tgid);
	if (!new.interval[DOOR_VDSO] && !new.interval[DOOR_OWN])
		return;
	key = this_thread();
	l = bpf_map_lookup_elem(&left, &key);
	if (!l)
		bpf_map_update_elem(&left, &key, &new, BPF_ANY);
	else if (l->interval[DOOR_VDSO] != new.interval[DOOR_VDSO] ||
		 l->interval[DOOR_OWN] != new.interval[DOOR_OWN])
		*l = new; /* only this thread uses it */
	else if (!l->cause)
		l->cause = 1 + cause;
}

/* Returns the record of the current thread in this interval of a door, or NULL. */
static __always_inline struct left *left_in(u32 door, u64 interval)
{
	struct thread_key key = this_thread();
	struct left *l = bpf_map_lookup_elem(&left, &key);

	return l && door < DOORS && l->interval[door] == interval ? l : NULL;
}

/* Reports whether the current process is the one that user space has added. User space removes a process that has ended only at
 * its next scan, and a later process with its ID may be another tenant's. /proc/PID/stat has the start of a process in ticks of
 * USER_HZ, which is 100 on these architectures.
 */
static __always_inline bool is_same(struct interrupted *of)
{
	struct task_struct___gs *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, group_leader, start_boottime) / TICK_NS == of->started;
}

/* Counts an event that has hit an enclave. */
static __noinline void hit(u32 cause)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct interrupted *of = bpf_map_lookup_elem(&interrupted, &tgid);

	if (of && cause < CAUSES && is_same(of))
		__sync_fetch_and_add(&of->n[cause], 1);
	leave_by(cause, tgid);
}

/* A breakpoint at EENTER. A thread that enters although it has not resumed handles the cause in the enclave. */
static __always_inline void enter(struct transitions *n, struct left *l)
{
	__sync_fetch_and_add(&n->enters, 1);
	if (l && l->cause) {
		l->outer = l->cause;
		l->cause = 0;
	}
}

/* A breakpoint at ERESUME. */
static __always_inline void resume(struct transitions *n, struct left *l)
{
	u32 by = 0;

	__sync_fetch_and_add(&n->resumes, 1);
	if (l && l->cause) {
		by = l->cause;
		l->cause = 0;
	} else if (l) {
		by = l->outer;
		l->outer = 0;
	}
	by = by ? by - 1 : CAUSE_OTHER;
	__sync_fetch_and_add(&n->causes[by & (CAUSE_PLACES - 1)], 1);
}

static __always_inline void left_enclave(void *ctx, struct pt_regs___aex *regs, u32 cause)
{
	hit(cause);
}

#include "aex_programs.h"

#endif
