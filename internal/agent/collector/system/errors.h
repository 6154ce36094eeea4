/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What system calls of watched processes return: errors, or bytes. */
#ifndef TEESCOPE_ERRORS_H
#define TEESCOPE_ERRORS_H

#include "bytes.h"
#include "slots.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct error_key);
	__type(value, u64);
} call_errors SEC(".maps");

static __always_inline void count_error(struct cpu_state *state, u32 call, long ret)
{
	struct error_key key = {.slot = state->slot, .call = call, .error = -ret};
	u64 one = 1, *n = bpf_map_lookup_elem(&call_errors, &key);

	if (!n && !bpf_map_update_elem(&call_errors, &key, &one, BPF_NOEXIST))
		return;
	if (!n)
		n = bpf_map_lookup_elem(&call_errors, &key);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		lost(LOST_ERRORS);
}

static __always_inline void end_watched(struct cpu_state *state, u32 call, long ret)
{
	if (ret > 0)
		count_bytes(state, call, ret);
	else if (ret < 0 && ret >= -4095)
		count_error(state, call, ret);
}

#endif
