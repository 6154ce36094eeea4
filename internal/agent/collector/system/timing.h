/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The time of system calls. The call that a thread is in is one word, the time at which it began above its
 * number, and lies with the CPU that runs the thread: entering and leaving a call touch nothing that belongs to
 * the thread. Only a thread that is switched out within a call takes its word along, by its ID.
 *
 * Sums alone, of the times of leaving less those of entering, would need no word, and do not suffice: a call that
 * seccomp or a tracer refuses is left without having been entered, so is the call that made a thread, and
 * processes change their slots while they are in a call. Each of them would be wrong by a second a second, for
 * ever (docs/decisions/timing.md).
 */
#ifndef TEESCOPE_TIMING_H
#define TEESCOPE_TIMING_H

#include "slots.h"

struct call_page {
	u64 call[PIDS_PER_PAGE];
};

/* By thread ID; 0 of a thread that runs or is in no call. Who makes a word 0 has taken it: the CPU that runs the
 * thread next, and nobody else. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* pid_max / PIDS_PER_PAGE with time_calls */
	__type(key, u32);
	__type(value, struct call_page);
} calls_in_flight SEC(".maps");

static __always_inline u64 *call_of(u32 pid)
{
	u32 page = pid / PIDS_PER_PAGE;
	struct call_page *p = bpf_map_lookup_elem(&calls_in_flight, &page);

	return p ? &p->call[pid % PIDS_PER_PAGE] : NULL;
}

/* The thread is switched out. */
static __always_inline void leave_call(struct cpu_state *state)
{
	u64 *its = state->call ? call_of(state->pid) : NULL;

	if (its)
		*its = state->call;
}

/* The thread is switched in, or seen to run here. What the CPU held of another thread is dropped: that one may
 * have ended its call elsewhere. */
static __always_inline void take_call(struct cpu_state *state)
{
	u64 *its = call_of(state->pid);

	state->call = its && *its ? __sync_lock_test_and_set(its, 0) : 0;
}

/* For how long a call has been timed, in nanoseconds. A word has 55 bits for the time: the difference is right up to
 * 208 days. Clocks of two CPUs may differ a little. */
static __always_inline u64 timed(u64 call, u64 now)
{
	s64 ns = (s64)((now << CALL_BITS) - (call & ~(u64)(CALLS - 1))) >> CALL_BITS;

	return ns > 0 ? ns : 0;
}

static __always_inline void begin_call(struct cpu_state *state, u32 call)
{
	if (told.timing_since != TIMING_RESTS)
		state->call = bpf_ktime_get_ns() << CALL_BITS | call;
}

static __always_inline void end_call(struct cpu_state *state)
{
	u64 call = state->call, now, ns;
	struct row_time *t;

	if (!call)
		return;
	state->call = 0;
	now = bpf_ktime_get_ns();
	ns = timed(call, now);
	t = bpf_map_lookup_elem(&times, &state->row);
	/* A call that began before timing rested would be as long as the rest. */
	if (t && now - ns >= told.timing_since)
		t->call_ns[call & (CALLS - 1)] += ns;
}

/* A call in flight: what it has taken so far is added, and it goes on from now. Its thread does not run, or takes
 * the word while this looks at it: then it adds the time itself. */
static __always_inline void settle_call(u32 pid, u32 slot)
{
	u32 i = bpf_get_smp_processor_id() * slots + slot;
	u64 *its = call_of(pid), call, now, ns;
	struct row_time *t;

	if (!its || !*its)
		return;
	call = *its;
	now = bpf_ktime_get_ns();
	ns = timed(call, now);
	t = bpf_map_lookup_elem(&times, &i);
	if (!t || !call || now - ns < told.timing_since)
		return;
	if (__sync_val_compare_and_swap(its, call, now << CALL_BITS | (call & (CALLS - 1))) == call)
		__sync_fetch_and_add(&t->call_ns[call & (CALLS - 1)], ns);
}

#endif
