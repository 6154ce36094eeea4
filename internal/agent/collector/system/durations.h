/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How long each system call of watched processes took, as a distribution.
 *
 * The task iterator restarts the word of a call in flight (timing.h), so the time since then is only the last part of
 * the call. It stores when the call began by thread ID, and sets CALL_RESTARTED in the word. The word that is stored
 * with the start distinguishes a call from later ones of the same thread.
 */
#ifndef TEESCOPE_DURATIONS_H
#define TEESCOPE_DURATIONS_H

#include "log2.h"
#include "slots.h"

/* By place of a watched process and number of the call. All CPUs add to one record, atomically: separate records
 * would take 3.7 MB for each CPU. User space sets the size before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* WATCHED_PLACES * CALLS */
	__type(key, u32);
	__type(value, struct call_durations);
} durations SEC(".maps");

/* The starts of restarted calls of watched processes, by thread ID. User space sets the size, and empties the map when it
 * switches timing on.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct call_start);
} call_starts SEC(".maps");

/* Stores when a call of a watched process began, before its word is replaced. */
static __always_inline void keep_start(u32 pid, u64 word, u64 replaced_by, u64 began)
{
	struct call_start *known, fresh = {.ns = began, .word = {word, replaced_by}};

	if (!(word & CALL_RESTARTED)) {
		if (bpf_map_update_elem(&call_starts, &pid, &fresh, BPF_ANY))
			lost(LOST_DURATIONS);
		return;
	}
	known = bpf_map_lookup_elem(&call_starts, &pid);
	/* The thread has the former word if it ran when its word was restarted last. */
	if (!known || (known->word[0] != word && known->word[1] != word))
		return;
	known->word[0] = word;
	known->word[1] = replaced_by;
}

/* A thread that executes a program and is not the first one of its process gets the ID of the first one, within the call. */
static __always_inline void rename_start(u32 from, u32 to)
{
	struct call_start *known = bpf_map_lookup_elem(&call_starts, &from), its;

	if (from == to || !known)
		return;
	its = *known;
	if (bpf_map_update_elem(&call_starts, &to, &its, BPF_ANY))
		lost(LOST_DURATIONS);
	bpf_map_delete_elem(&call_starts, &from);
}

/* Returns how long a restarted call has lasted, or 0 if its start is not known. */
static __always_inline u64 whole_duration(u32 pid, u64 word, u64 now)
{
	struct call_start *known = bpf_map_lookup_elem(&call_starts, &pid);
	u64 ns = 0;

	if (known && (known->word[0] == word || known->word[1] == word) && now > known->ns)
		ns = now - known->ns;
	bpf_map_delete_elem(&call_starts, &pid);
	return ns;
}

/* Counts a call that ends. `ns` is the time since its word was restarted last. */
static __always_inline void count_duration(struct cpu_state *state, u64 word, u64 now, u64 ns)
{
	u32 place = state->place, at, bucket;
	struct call_durations *d;

	if (word & CALL_RESTARTED) {
		ns = whole_duration(state->pid, word, now);
		if (!ns)
			return;
	}
	if (!place)
		return;
	at = (place - 1) * CALLS + (word & (CALLS - 1));
	d = bpf_map_lookup_elem(&durations, &at);
	bucket = bucket_of(ns, DURATION_SHIFT, DURATION_BUCKETS);
	if (!d || bucket >= DURATION_BUCKETS)
		return;
	__sync_fetch_and_add(&d->calls[bucket], 1);
	__sync_fetch_and_add(&d->ns, ns);
}

#endif
