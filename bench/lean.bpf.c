// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * A reference for comparison, and no part of teescope: the minimum that a program for ebpf_exporter does to count
 * system calls by process and call. It has one typed tracepoint, and one hash that evicts its oldest entries.
 */
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

enum { LRU_HASH = 9 }; /* BPF_MAP_TYPE_LRU_HASH */

struct key {
	u32 tgid;
	u32 nr;
};

struct {
	__uint(type, LRU_HASH);
	__uint(max_entries, 10240);
	__type(key, struct key);
	__type(value, u64);
} calls SEC(".maps");

SEC("tp_btf/sys_enter") int BPF_PROG(lean_enter, struct pt_regs *regs, long nr)
{
	struct key key = {.tgid = bpf_get_current_pid_tgid() >> 32, .nr = nr};
	u64 one = 1, *n = bpf_map_lookup_elem(&calls, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&calls, &key, &one, BPF_NOEXIST);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
