// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/* A program on sys_enter that does nothing. Its cost is the minimum for any tracer. */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

SEC("tp_btf/sys_enter")
int empty(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
