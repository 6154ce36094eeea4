// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/* The floor: a program on sys_enter that does nothing. What it costs, no tracer can avoid. */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

SEC("tp_btf/sys_enter")
int empty(void *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
