// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * A reference for comparison, and no part of teescope. It counts events as TEEMon's programs for ebpf_exporter do
 * (Middleware 2020, table 2). It has classic tracepoints on entry and exit of a system call, and shared hashes of
 * 10,240 entries with atomic additions. System calls are keyed by thread, call and name; both sides of a switch and
 * page faults by thread. As in the original, events without an entry in a full hash are silently not counted.
 */

#include "kernel.h"

#include <bpf/bpf_helpers.h>

#define ENTRIES 10240 /* ebpf_exporter's default, which TEEMon keeps */

struct call_key {
	u64 pid_tgid;
	u64 nr;
	char comm[16];
};

#define COUNTER(name, key_type)                                                                    \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, ENTRIES);                                                      \
		__type(key, key_type);                                                             \
		__type(value, u64);                                                                \
	} name SEC(".maps")

COUNTER(entered, struct call_key);
COUNTER(left, struct call_key);
COUNTER(switched_in, u32);
COUNTER(switched_out, u32);
COUNTER(faults_user, u32);
COUNTER(faults_kernel, u32);

static __always_inline void increment(void *map, const void *key)
{
	u64 zero = 0, *n = bpf_map_lookup_elem(map, key);

	if (!n) {
		bpf_map_update_elem(map, key, &zero, BPF_NOEXIST);
		n = bpf_map_lookup_elem(map, key);
	}
	if (n)
		__sync_fetch_and_add(n, 1);
}

/* /sys/kernel/tracing/events/raw_syscalls/{sys_enter,sys_exit}/format */
struct call_event {
	u64 common;
	long id;
};

static __always_inline int on_call(void *map, const struct call_event *event)
{
	struct call_key key = {.pid_tgid = bpf_get_current_pid_tgid(), .nr = event->id};

	bpf_get_current_comm(&key.comm, sizeof(key.comm));
	increment(map, &key);
	return 0;
}

SEC("tracepoint/raw_syscalls/sys_enter") int teemon_enter(struct call_event *event)
{
	return on_call(&entered, event);
}

SEC("tracepoint/raw_syscalls/sys_exit") int teemon_exit(struct call_event *event)
{
	return on_call(&left, event);
}

/* /sys/kernel/tracing/events/sched/sched_switch/format */
struct switch_event {
	u64 common;
	char prev_comm[16];
	u32 prev_pid;
	u32 prev_prio;
	long prev_state;
	char next_comm[16];
	u32 next_pid;
};

SEC("tracepoint/sched/sched_switch") int teemon_switch(struct switch_event *event)
{
	u32 prev = event->prev_pid, next = event->next_pid;

	increment(&switched_out, &prev);
	increment(&switched_in, &next);
	return 0;
}

SEC("tracepoint/exceptions/page_fault_user") int teemon_user(void *event)
{
	u32 pid = bpf_get_current_pid_tgid();

	increment(&faults_user, &pid);
	return 0;
}

SEC("tracepoint/exceptions/page_fault_kernel") int teemon_kernel(void *event)
{
	u32 pid = bpf_get_current_pid_tgid();

	increment(&faults_kernel, &pid);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
