/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Durations of calls in watched processes. */
#ifndef TEESCOPE_BOUNDARY_TIMING_H
#define TEESCOPE_BOUNDARY_TIMING_H

#include "pairs.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2048);
	__type(key, struct call_key);
	__type(value, struct duration);
} durations SEC(".maps");

/* Returns the call of a thread with that frame and site, or NULL. */
static __always_inline struct start *started(struct thread_calls *t, u64 frame, u32 site)
{
#pragma unroll
	for (int i = 0; i < OPEN_CALLS; i++)
		if (t->open[i].frame == frame && t->open[i].site == site)
			return &t->open[i];
	return NULL;
}

/* Returns the entry for the next call of a thread. Some calls never return, because the thread jumps out of them. So the oldest
 * call of the thread is replaced. Calls of one thread never replace those of another.
 */
static __always_inline struct start *room_for(struct thread_calls *t)
{
	u64 oldest = ~0ULL;
	u32 at = 0;

#pragma unroll
	for (int i = 0; i < OPEN_CALLS; i++)
		if (t->open[i].ns < oldest) {
			oldest = t->open[i].ns;
			at = i;
		}
	return &t->open[at & (OPEN_CALLS - 1)];
}

/* Reads the clock last, so that the call does not include the code before. */
static __always_inline void begin(struct file_state *state, struct call_key *call, u64 frame,
				  u64 cookie)
{
	struct thread_calls *t = follow(call->tgid, true);
	struct start *start;

	if (!t) {
		lost(LOST_DURATIONS);
		if (COOKIE_PAIRS(cookie))
			lost(LOST_PAIRS);
		return;
	}
	if (COOKIE_PAIRS(cookie)) {
		struct seen_call seen = {.of = {.site = call->site, .argument = call->argument},
					 .frame = frame,
					 .at = bpf_ktime_get_ns(),
					 .following = state->following,
					 .file = COOKIE_FILE(cookie)};

		call_begins(t, call->tgid, COOKIE_INWARD(cookie), &seen);
	}
	start = started(t, frame, call->site); /* it was left, or begins again by a jump */
	if (!start) {
		start = room_for(t);
		if (start->ns &&
		    start->interval == state->open) { /* else counted at the end of its interval */
			lost(LOST_DURATIONS);
			__sync_fetch_and_add(&state->ended, 1);
		}
	}
	__sync_fetch_and_add(&state->begun, 1);
	start->frame = frame;
	start->site = call->site;
	start->interval = state->open;
	start->argument = call->argument;
	start->ns = bpf_ktime_get_ns();
}

/* Not on the stack. A program and the functions that it calls may use 512 bytes together, which 6.1 counts in steps of 32. */
static const struct duration no_duration;

static __always_inline u32 bucket_of(u64 ns)
{
	u32 bucket = 0;

#pragma unroll
	for (int i = 0; i < BUCKETS - 1; i++)
		bucket += ns >= 1ULL << (BUCKET_SHIFT + i);
	return bucket;
}

static __always_inline void time_call(struct call_key *key, u64 ns)
{
	struct duration *d = bpf_map_lookup_elem(&durations, key);
	u32 bucket = bucket_of(ns);

	if (!d) {
		bpf_map_update_elem(&durations, key, &no_duration, BPF_NOEXIST);
		d = bpf_map_lookup_elem(&durations, key);
	}
	if (!d) {
		lost(LOST_DURATIONS);
		return;
	}
	if (bucket < BUCKETS)
		__sync_fetch_and_add(&d->bucket[bucket], 1);
	__sync_fetch_and_add(&d->sum_ns, ns);
}

#endif
