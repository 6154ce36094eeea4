/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Stacks of events, instead of those of the clock: system calls with their time, waiting for something else than a CPU
 * and for a CPU, calls of functions, and asynchronous exits of enclaves. Each event is taken with the same probability, so
 * what is counted is a sample of the events, also if they have a pattern.
 */
#ifndef TEESCOPE_EVENTS_H
#define TEESCOPE_EVENTS_H

/* An event is taken if a random number is at most this one. */
const volatile u32 take_below = ~0U;

/* A call or wait that continues. */
struct begun {
	u64 since;
	u32 call;
};

/* By thread. LRU, because a thread with a new ID (execve) leaves one behind. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, BEGUN);
	__type(key, u32);
	__type(value, struct begun);
} calling SEC(".maps");

struct waiting {
	u64 since;
	struct sample_key key;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, BEGUN);
	__type(key, u32);
	__type(value, struct waiting);
} waits SEC(".maps");

/* The tables of OCALLs that processes have passed. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, TABLES_SEEN);
	__type(key, struct table_key);
	__type(value, u64);
} ocall_tables SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___waits {
	unsigned in_iowait : 1;
	unsigned int __state; /* from 5.14 */
};
#pragma clang attribute pop

/* Stores the beginning of a call or wait. Those that have neither ended nor are in a map were evicted, because too many threads
 * were in one.
 */
static __always_inline void remember(void *map, u32 *tid, void *begun)
{
	if (!bpf_map_update_elem(map, tid, begun, BPF_NOEXIST))
		tally(BEGAN);
	else
		bpf_map_update_elem(map, tid, begun,
				    BPF_ANY); /* of a thread that ended in a call */
}

static __always_inline void forget(void *map, u32 *tid)
{
	if (!bpf_map_delete_elem(map, tid))
		tally(ENDED);
}

static __always_inline bool chosen(void)
{
	return bpf_get_prandom_u32() <= take_below && (u32)bpf_get_current_pid_tgid();
}

static __always_inline void finish(struct sample_key *key, void *samples, u64 nanoseconds)
{
	tally(TAKEN);
	if (key->stack_lost)
		tally(LOST_STACKS);
	count(samples, key, nanoseconds);
}

/* Whether a call ends its thread. The first event of the next thread with the same ID is the return of a call, that of clone. */
static __always_inline bool never_returns(long nr, bool compat)
{
	enum { EXIT = 60, EXIT_GROUP = 231, COMPAT_EXIT = 1, COMPAT_EXIT_GROUP = 252 };

	if (compat)
		return nr == COMPAT_EXIT || nr == COMPAT_EXIT_GROUP;
	return nr == EXIT || nr == EXIT_GROUP;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(call_begins, struct pt_regs *regs, long nr)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct begun begun = {.call = nr + 1};
	u32 tid = bpf_get_current_pid_tgid();
	bool compat;

	if (!chosen() || !wanted(task))
		return 0;
	compat = BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
	if (never_returns(nr, compat))
		return 0;
	if (compat)
		begun.call = COMPAT;
	begun.since = bpf_ktime_get_ns();
	remember(&calling, &tid, &begun);
	return 0;
}

static __always_inline int take_call(void *ctx, struct begun *begun, u64 nanoseconds, void *stacks,
				     void *samples)
{
	struct sample_key key = {};

	identify(&key, (void *)bpf_get_current_task());
	key.call = begun->call;
	store_user(ctx, stacks, &key);
	finish(&key, samples, nanoseconds);
	return 0;
}

/* The user stack is the same at the end of a call as at its beginning, except for execve. */
SEC("tp_btf/sys_exit")
int BPF_PROG(call_ends, struct pt_regs *regs, long ret)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct begun *have = bpf_map_lookup_elem(&calling, &tid), begun;
	u64 passed;

	if (!have)
		return 0;
	begun = *have;
	forget(&calling, &tid);
	passed = bpf_ktime_get_ns() - begun.since;
	if (current_generation())
		return take_call(ctx, &begun, passed, &stacks_1, &samples_1);
	return take_call(ctx, &begun, passed, &stacks_0, &samples_0);
}

static __always_inline void wait_ends(u32 tid, u64 time)
{
	struct waiting *w = bpf_map_lookup_elem(&waits, &tid);

	if (!w)
		return;
	if (current_generation())
		finish(&w->key, &samples_1, time - w->since);
	else
		finish(&w->key, &samples_0, time - w->since);
	forget(&waits, &tid);
}

static __always_inline void wait_begins(void *ctx, bool preempt, struct task_struct *prev,
					void *stacks, u64 time)
{
	struct task_struct___waits *state = (void *)prev;
	struct waiting w = {.since = time};

	identify(&w.key, prev);
	w.key.preempted = preempt || !BPF_CORE_READ(state, __state);
	w.key.for_disk = !w.key.preempted && BPF_CORE_READ_BITFIELD_PROBED(state, in_iowait);
	store_kernel(ctx, stacks, &w.key);
	store_user(ctx, stacks, &w.key);
	remember(&waits, &w.key.tid, &w);
}

/* Here the current thread is still the previous one, which no longer runs. So its stack is stored now, and the time
 * is counted when it runs again, perhaps in the other generation: user space keeps the stacks. */
SEC("tp_btf/sched_switch")
int BPF_PROG(threads_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u64 time = bpf_ktime_get_ns();
	u32 tid = next->pid;

	if (tid)
		wait_ends(tid, time);
	if (!chosen() || prev->flags & (PF_KTHREAD | PF_EXITING) || !wanted(prev))
		return 0;
	if (current_generation())
		wait_begins(ctx, preempt, prev, &stacks_1, time);
	else
		wait_begins(ctx, preempt, prev, &stacks_0, time);
	return 0;
}

static __always_inline void keep_table(u64 address)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct table_key key = {.address = address};
	u64 seen = 1;

	key.tgid = bpf_get_current_pid_tgid() >> 32;
	key.start = BPF_CORE_READ(task, group_leader, start_boottime);
	key.image = BPF_CORE_READ((struct task_struct___image *)task, self_exec_id);
	bpf_map_update_elem(&ocall_tables, &key, &seen, BPF_NOEXIST);
}

static __always_inline int take_function(void *ctx, void *stacks, void *samples)
{
	struct sample_key key = {};

	identify(&key, (void *)bpf_get_current_task());
	store_user(ctx, stacks, &key);
	finish(&key, samples, 0);
	return 0;
}

static __always_inline int at_function(struct pt_regs *ctx)
{
	if (bpf_get_attach_cookie(ctx) == TABLE) {
		keep_table(ctx->dx);
		return 0;
	}
	if (!chosen() || !wanted((void *)bpf_get_current_task()))
		return 0;
	if (current_generation())
		return take_function(ctx, &stacks_1, &samples_1);
	return take_function(ctx, &stacks_0, &samples_0);
}

SEC("uprobe") int function_called(struct pt_regs *ctx)
{
	return at_function(ctx);
}

SEC("uprobe.multi") int function_called_multi(struct pt_regs *ctx)
{
	return at_function(ctx);
}

static __always_inline int take_exit(void *ctx, u64 tcs, u32 cause, void *stacks, void *samples)
{
	struct sample_key key = {};

	identify(&key, (void *)bpf_get_current_task());
	key.tcs = tcs;
	key.cause = 1 + cause;
	store_user(ctx, stacks, &key);
	finish(&key, samples, 0);
	return 0;
}

/* The user stack is that of the thread outside: the processor restores its stack and frame pointers, and the innermost
 * address is the AEP. */
static __always_inline void left_enclave(void *ctx, struct pt_regs___aex *regs, u32 cause)
{
	u64 tcs = regs->bx;

	if (!chosen() || !wanted((void *)bpf_get_current_task()))
		return;
	if (current_generation())
		take_exit(ctx, tcs, cause, &stacks_1, &samples_1);
	else
		take_exit(ctx, tcs, cause, &stacks_0, &samples_0);
}

#include "aex_programs.h"

#endif
