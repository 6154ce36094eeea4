/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The state of the threads of watched processes: the number of crossings, the calls that have not returned, and which call
 * follows which.
 *
 * A call is identified by its stack pointer. An ECALL with a lower stack pointer than the ECALL that the thread runs is made by an
 * OCALL. Calls in it are not followed, so at most one ECALL of a thread is followed. The state of a thread is dropped when the
 * timing of one of the files begins again, because calls may have been missed in between.
 */
#ifndef TEESCOPE_BOUNDARY_PAIRS_H
#define TEESCOPE_BOUNDARY_PAIRS_H

#include "tenants.h"

/* Preallocated, because before 6.2 perf_event programs must not allocate. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, PLACES_THREADS);
	__type(key, struct crossed_key);
	__type(value, struct thread_transitions);
} crossed_threads SEC(".maps");

/* User space removes threads that have ended. In an LRU one tenant's threads would replace those of another. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PLACES_FOLLOWING);
	__type(key, struct thread_key);
	__type(value, struct thread_calls);
} following SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PLACES_PAIRS);
	__type(key, struct pair_key);
	__type(value, struct pair);
} pairs SEC(".maps");

/* Counts a transition of the current thread. */
static __always_inline void thread_crosses(u32 tgid, u32 by, u64 enters, u64 resumes)
{
	struct task_struct___gs *task = (void *)bpf_get_current_task();
	struct crossed_key key = {.tid = (u32)bpf_get_current_pid_tgid(), .by = by};
	struct thread_transitions *n, new = {.tgid = tgid};

	key.start = BPF_CORE_READ(task, start_boottime);
	n = bpf_map_lookup_elem(&crossed_threads, &key);
	if (!n && take_place(LIMITED_THREADS, PLACES_THREADS, tgid)) {
		bpf_map_update_elem(&crossed_threads, &key, &new, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&crossed_threads, &key);
	}
	if (!n) {
		lost(LOST_CROSSED);
		return;
	}
	n->enters += enters; /* only this thread writes */
	n->resumes += resumes;
}

static const struct pair no_pair;

/* Counts that a call has followed another one after this time. */
static __noinline void pair(u32 tgid, u32 kind, struct called *from, struct called *to, u64 ns)
{
	struct pair_key key = {.tgid = tgid, .kind = kind, .from = *from, .to = *to};
	struct pair *n = bpf_map_lookup_elem(&pairs, &key);

	if (!n && take_place(LIMITED_PAIRS, PLACES_PAIRS, tgid)) {
		bpf_map_update_elem(&pairs, &key, &no_pair, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&pairs, &key);
	}
	if (!n) {
		lost(LOST_PAIRS);
		return;
	}
	__sync_fetch_and_add(&n->n, 1);
	__sync_fetch_and_add(&n->ns, ns);
	if (ns < 1000)
		__sync_fetch_and_add(&n->within[WITHIN_1US], 1);
	else if (ns < 5000)
		__sync_fetch_and_add(&n->within[WITHIN_5US], 1);
	else if (ns < 10000)
		__sync_fetch_and_add(&n->within[WITHIN_10US], 1);
	else if (ns < 20000)
		__sync_fetch_and_add(&n->within[WITHIN_20US], 1);
}

static const struct thread_calls no_calls;

/* Returns the record of the current thread. */
static __always_inline struct thread_calls *follow(u32 tgid, bool create)
{
	struct task_struct___gs *task = (void *)bpf_get_current_task();
	struct thread_key key = {.tid = (u32)bpf_get_current_pid_tgid()};
	struct thread_calls *t;

	key.start = BPF_CORE_READ(task, start_boottime);
	t = bpf_map_lookup_elem(&following, &key);
	if (t || !create)
		return t;
	if (take_place(LIMITED_FOLLOWING, PLACES_FOLLOWING, tgid)) {
		bpf_map_update_elem(&following, &key, &no_calls, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&following, &key);
	}
	if (t)
		t->tgid = tgid;
	return t;
}

/* Reports whether every call of a file has been seen since a call. */
static __always_inline bool unbroken(struct seen_call *call)
{
	u32 file = call->file;
	struct file_state *state;

	if (!call->of.site)
		return false;
	state = bpf_map_lookup_elem(&files, &file);
	return state && state->following == call->following;
}

/* A call of a watched process begins. */
static __always_inline void call_begins(struct thread_calls *t, u32 tgid, bool inward,
					struct seen_call *call)
{
	if (inward) {
		if (t->outside && unbroken(&t->ecall) && call->frame < t->ecall.frame) {
			if (call->frame > t->nested)
				t->nested = call->frame; /* the outermost one */
			return;
		}
		if (unbroken(&t->before))
			pair(tgid, PAIR_NEXT_ECALL, &t->before.of, &call->of,
			     call->at - t->before.at);
		t->ecall = *call;
		t->before.of.site = t->last.of.site = t->nested = t->outside = 0;
		return;
	}
	if (call->frame < t->nested)
		return;
	t->nested = 0;
	t->outside = 1;
	if (unbroken(&t->ecall)) {
		pair(tgid, PAIR_BEGIN, &t->ecall.of, &call->of, call->at - t->ecall.at);
		if (unbroken(&t->last))
			pair(tgid, PAIR_NEXT_OCALL, &t->last.of, &call->of, call->at - t->last.at);
	}
	t->last.of.site = 0;
}

/* A call of a watched process has returned. Its time is that of the return. */
static __always_inline void call_ends(struct thread_calls *t, u32 tgid, bool inward,
				      struct seen_call *call)
{
	if (call->frame == t->nested)
		t->nested = 0;
	else if (call->frame < t->nested)
		return;
	else if (!inward) {
		t->outside = 0;
		t->last = *call;
	} else if (call->frame == t->ecall.frame) {
		if (unbroken(&t->ecall) && unbroken(&t->last))
			pair(tgid, PAIR_END, &call->of, &t->last.of, call->at - t->last.at);
		t->before = *call;
		t->ecall.of.site = t->last.of.site = t->nested = t->outside = 0;
	}
}

#endif
