// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/* Memory of the kernel that a test writes to, and its address. The test builds records of KVM there. */
#include "kernel.h"

struct page {
	u64 words[512];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct page);
} memory SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} address SEC(".maps");

SEC("syscall") int find(void *ctx)
{
	u32 zero = 0;
	struct page *page = bpf_map_lookup_elem(&memory, &zero);
	u64 *to = bpf_map_lookup_elem(&address, &zero);

	if (page && to)
		*to = (u64)page;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
