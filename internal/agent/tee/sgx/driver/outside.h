/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Counts what a driver outside the kernel's tree does: the module isgx (linux-sgx-driver) or intel_sgx (DCAP). Such a
 * module has no description of its types. So these programs follow no pointer. They count calls and results for the
 * whole machine. */
#ifndef TEESCOPE_SGX_OUTSIDE_H
#define TEESCOPE_SGX_OUTSIDE_H

#include "enclaves.h"

/* Addresses of unsigned int variables of isgx, 0 if unknown: sgx_nr_free_pages and sgx_nr_total_epc_pages. */
const volatile u64 outside_free_address = 0;
const volatile u64 outside_size_address = 0;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct outside_pages);
} outside_state SEC(".maps");

static __always_inline int count_outside(u32 what)
{
	struct totals *t = this_cpu();

	if (t && what < COUNTS)
		__sync_fetch_and_add(&t->count[what], 1);
	return 0;
}

static __always_inline int total_outside(u32 what)
{
	add_total(what, 1);
	return 0;
}

#define OUTSIDE(name, body)                                                                        \
	SEC("kprobe/outside") int outside_##name(struct pt_regs *ctx)                              \
	{                                                                                          \
		return body;                                                                       \
	}
#define OUTSIDE_RETURN(name, condition, body)                                                      \
	SEC("kretprobe/outside") int outside_##name(struct pt_regs *ctx)                           \
	{                                                                                          \
		u64 ret = ctx->ax;                                                                 \
		return condition ? body : 0;                                                       \
	}

OUTSIDE(freed, total_outside(FREED))
OUTSIDE(written, total_outside(WRITTEN))
OUTSIDE(fault, count_outside(FAULTS))
OUTSIDE_RETURN(allocated, !is_error(ret), total_outside(ALLOCATED))
OUTSIDE_RETURN(augmented, !is_error(ret), count_outside(AUGMENTED))
OUTSIDE_RETURN(added, !(s32)ret, count_outside(ADDED))
OUTSIDE_RETURN(loaded_back, !(s32)ret, count_outside(LOADED_BACK))
OUTSIDE_RETURN(initialized, !(s32)ret, count_outside(INITIALIZED))

/* A creation that fails releases the enclave that it has begun. */
SEC("kprobe/outside") int outside_creating(struct pt_regs *ctx)
{
	struct thread *t = this_thread(true);

	if (t)
		t->creating = 1;
	return 0;
}

SEC("kretprobe/outside") int outside_created(struct pt_regs *ctx)
{
	struct thread *t = this_thread(false);

	if (t)
		t->creating = 0;
	return (s32)ctx->ax ? 0 : count_outside(CREATED);
}

SEC("kprobe/outside") int outside_released(struct pt_regs *ctx)
{
	struct thread *t = this_thread(false);

	return t && t->creating ? 0 : count_outside(RELEASED);
}

/* The requests to the driver of DCAP have the same numbers as those to the in-tree driver. */
SEC("kprobe/outside") int outside_ioctl_args(struct pt_regs *ctx)
{
	struct thread *t = this_thread(true);

	if (t)
		t->ioctl[1] = ctx->si;
	return 0;
}

SEC("kretprobe/outside") int outside_ioctl(struct pt_regs *ctx)
{
	struct thread *t = this_thread(false);
	u32 request;

	if (!t || ctx->ax)
		return 0;
	request = t->ioctl[1] & 0xff;
	if (request == IOC_CREATE)
		count_outside(CREATED);
	if (request == IOC_INIT)
		count_outside(INITIALIZED);
	return 0;
}

/* User space runs it for each scrape. */
SEC("syscall") int outside_pages(void *ctx)
{
	struct outside_pages *pages;
	u32 zero = 0, free = 0, size = 0;

	pages = bpf_map_lookup_elem(&outside_state, &zero);
	if (!pages)
		return 0;
	pages->read = outside_free_address && outside_size_address &&
		      !bpf_probe_read_kernel(&free, sizeof(free), (void *)outside_free_address) &&
		      !bpf_probe_read_kernel(&size, sizeof(size), (void *)outside_size_address);
	pages->free = free;
	pages->size = size;
	return 0;
}

#endif
