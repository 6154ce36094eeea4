/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Durations of calls in watched processes. */
#ifndef TEESCOPE_BOUNDARY_TIMING_H
#define TEESCOPE_BOUNDARY_TIMING_H

#include "pairs.h"

/* LRU, because some calls never return: the thread ends in them or jumps out of them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct start_key);
	__type(value, struct start);
} starts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2048);
	__type(key, struct call_key);
	__type(value, struct duration);
} durations SEC(".maps");

/* Reads the clock last, so that the call does not include the code before. */
static __always_inline void begin(struct file_state *state, struct call_key *call, u64 frame,
				  u64 cookie)
{
	struct start_key at = {
		.frame = frame, .tid = (u32)bpf_get_current_pid_tgid(), .site = call->site};
	struct start start = {.interval = state->open, .argument = call->argument};

	if (COOKIE_PAIRS(cookie)) {
		struct seen_call seen = {.of = {.site = call->site, .argument = call->argument},
					 .frame = frame,
					 .at = bpf_ktime_get_ns(),
					 .following = state->following,
					 .file = COOKIE_FILE(cookie)};

		call_begins(call->tgid, COOKIE_INWARD(cookie), &seen);
	}
	__sync_fetch_and_add(&state->begun, 1);
	start.ns = bpf_ktime_get_ns();
	bpf_map_update_elem(&starts, &at, &start, BPF_ANY);
}

/* Not on the stack. That of a program and what it calls may have 512 bytes, which 6.1 counts in steps of 32. */
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
