/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The time of system calls. One word describes the call that a thread is in: its start time, above its number. The
 * word is stored with the CPU that runs the thread, so entering and leaving a call access no per-thread storage. When
 * a thread is switched out within a call, the word is stored under its thread ID.
 *
 * The sum of exit times minus the sum of entry times would need no word, but would be wrong. A call that seccomp or a
 * tracer refuses has an exit and no entry. So does the call that created a thread. Processes change their slots within
 * calls. Each of these would add an error of one second per second, for ever (docs/decisions/timing.md).
 */
#ifndef TEESCOPE_TIMING_H
#define TEESCOPE_TIMING_H

#include "durations.h"
#include "slots.h"

struct call_page {
	u64 call[PIDS_PER_PAGE];
};

/* Indexed by thread ID. The word is 0 while the thread runs or is in no call. Only the CPU that runs the thread next
 * sets it to 0, and takes it. */
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

/* Returns the nanoseconds since the time of a word. A word has 54 bits for the time, so differences up to 104 days are
 * right. The clocks of two CPUs may differ a little. */
static __always_inline u64 timed(u64 call, u64 now)
{
	s64 ns = (s64)((now << CALL_BITS) - (call & ~(u64)((1 << CALL_BITS) - 1))) >> CALL_BITS;

	return ns > 0 ? ns : 0;
}

struct task_struct___waiting {
	unsigned in_iowait : 1;
};

/* Adds to a time outside of calls. */
static __always_inline void add_outside(struct cpu_state *state, u32 what, u64 ns)
{
	struct row_time *t = bpf_map_lookup_elem(&times, &state->row);

	if (t && control.timing_since != TIMING_OFF)
		t->call_ns[what] += ns;
}

/* The thread waits outside of a call, for a page that is read from a device. Other waits outside of calls, such as those of a
 * stopped process, are not for devices.
 */
static __always_inline void begin_io_wait(struct cpu_state *state, struct task_struct *task)
{
	struct task_struct___waiting *waiting = (void *)task;

	if (!state->call && control.timing_since != TIMING_OFF &&
	    BPF_CORE_READ_BITFIELD_PROBED(waiting, in_iowait))
		state->call = bpf_ktime_get_ns() << CALL_BITS | CALL_IO_WAIT;
}

/* The thread runs again on this CPU. Its wait for the CPU is part of an I/O wait that ends now, or of the time of a call.
 * Outside of calls, and in calls of idle_calls, it is also counted separately when the thread is switched out, because only
 * then the kernel's counter contains it.
 */
static __always_inline void end_wait(struct cpu_state *state)
{
	u32 call = state->call & (CALLS - 1);
	u64 now, ns;

	state->waited_outside = !state->call || idle_calls[call / 64] >> (call % 64) & 1;
	if (!state->call || call != CALL_IO_WAIT)
		return;
	now = bpf_ktime_get_ns();
	ns = timed(state->call, now);
	state->call = 0;
	if (now - ns >= control.timing_since)
		add_outside(state, CALL_IO_WAIT, ns);
}

/* The thread is switched out. */
static __always_inline void leave_call(struct cpu_state *state)
{
	u64 *its = state->call ? call_of(state->pid) : NULL;

	if (its)
		*its = state->call;
}

/* The thread is switched in, or found running here. The CPU's word of another thread is dropped, because that thread
 * may have ended its call on another CPU. */
static __always_inline void take_call(struct cpu_state *state)
{
	u64 *its = call_of(state->pid);

	state->call = its && *its ? __sync_lock_test_and_set(its, 0) : 0;
}

static __always_inline void begin_call(struct cpu_state *state, u32 call)
{
	if (control.timing_since != TIMING_OFF)
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
	/* Calls that began before timing was switched off are omitted: they would include the time without timing. */
	if (!t || now - ns < control.timing_since)
		return;
	t->call_ns[call & (CALLS - 1)] += ns;
	if (state->place || call & CALL_RESTARTED)
		count_duration(state, call, now, ns);
}

/* The call that ends a thread never returns. */
static __always_inline void drop_call(struct cpu_state *state)
{
	if (state->place || state->call & CALL_RESTARTED)
		bpf_map_delete_elem(&call_starts, &state->pid);
	state->call = 0;
}

/* Adds the time so far of a call in flight, and restarts its word from now. If the thread is switched in meanwhile, it
 * takes the word and adds the time itself. */
static __always_inline void add_call_so_far(u32 pid, u32 slot)
{
	u64 *its = call_of(pid), call, now, ns, restarted;
	struct cpu_state *state = this_cpu();
	struct watched_slot *of;
	struct row_time *t;
	u32 i;

	if (!its || !*its || !state)
		return;
	call = *its;
	now = bpf_ktime_get_ns();
	ns = timed(call, now);
	i = state->first_row + slot;
	t = bpf_map_lookup_elem(&times, &i);
	if (!t || !call || now - ns < control.timing_since)
		return;
	restarted = now << CALL_BITS | CALL_RESTARTED | (call & (CALLS - 1));
	of = watched_of(slot);
	if (of && of->place && (call & (CALLS - 1)) != CALL_IO_WAIT)
		keep_start(pid, call, restarted, now - ns);
	if (__sync_val_compare_and_swap(its, call, restarted) != call)
		return;
	__sync_fetch_and_add(&t->call_ns[call & (CALLS - 1)], ns);
	touch(state, slot);
}

#endif
