// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/* Programs for the tests of package bpf: some that count, and one for an event that no kernel has. */
#include "kernel.h"

const volatile u32 step = 1;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} table SEC(".maps");

static __always_inline int count(void)
{
	u32 first = 0;
	u64 *n = bpf_map_lookup_elem(&counts, &first);

	if (n)
		__sync_fetch_and_add(n, step);
	return 0;
}

SEC("tp_btf/sys_enter") int typed(void *ctx)
{
	return count();
}

SEC("tp_btf/sys_enter") int second(void *ctx)
{
	return count();
}

SEC("tp_btf/no_such_event") int absent(void *ctx)
{
	return count();
}

SEC("perf_event") int sampled(void *ctx)
{
	return count();
}

SEC("iter/task") int each_task(struct bpf_iter__task *ctx)
{
	return ctx->task ? count() : 0;
}

SEC("syscall") int called(void *ctx)
{
	return count();
}

/* Adds its cookie to the count. */
static __always_inline int count_cookie(void *ctx)
{
	u32 first = 0;
	u64 *n = bpf_map_lookup_elem(&counts, &first);

	if (n)
		__sync_fetch_and_add(n, bpf_get_attach_cookie(ctx));
	return 0;
}

SEC("uprobe") int user(void *ctx)
{
	return count_cookie(ctx);
}

SEC("uprobe.multi") int user_multi(void *ctx)
{
	return count_cookie(ctx);
}

char LICENSE[] SEC("license") = "GPL";
