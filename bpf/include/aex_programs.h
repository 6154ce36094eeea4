/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Programs at the tracepoints of page faults and interrupts, which run in the thread that was interrupted. Each event reads
 * three registers and is finished, unless it has hit an enclave. Then it calls left_enclave, which the including file has.
 */
#ifndef TEESCOPE_AEX_PROGRAMS_H
#define TEESCOPE_AEX_PROGRAMS_H

#include "aex.h"

/* The registers that the current interrupt has saved, on each CPU (arch/x86/kernel/irq.c). Weak, because kernels without
 * CONFIG_KALLSYMS_ALL hide the address, and others hide it from an agent without CAP_SYSLOG. */
extern void __irq_regs __ksym __weak;
extern void __per_cpu_offset __ksym __weak;

/* The entries of page faults into the kernel, and with FRED those of all events that have interrupted the kernel. */
extern void asm_exc_page_fault __ksym __weak;
extern void asm_fred_entrypoint_kernel __ksym __weak;

enum {
	KERNEL_FRAMES = 32, /* of the kernel's stack */
	ENTRY_BYTES = 64,   /* of an entry, to its return address */
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___faults {
	unsigned long min_flt, maj_flt;
};
#pragma clang attribute pop

/* How many page faults a thread had when its last one in an enclave began, and one more. A thread has its own, because every program
 * can have the registers of an AEX: in a map with a limit it would replace those of others. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} faulting SEC(".maps");

static __always_inline u64 page_faults(struct task_struct *t)
{
	struct task_struct___faults *task = (void *)t;

	return BPF_CORE_READ(task, min_flt) + BPF_CORE_READ(task, maj_flt) + 1;
}

static __always_inline void fault_begins(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *n = bpf_task_storage_get(&faulting, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (n)
		*n = page_faults(task);
}

/* Reports whether the current interrupt has interrupted the handler of a page fault. */
static __noinline bool in_page_fault(void *ctx)
{
	u64 frames[KERNEL_FRAMES], fault = (u64)&asm_exc_page_fault,
				   kernel = (u64)&asm_fred_entrypoint_kernel;
	long bytes = bpf_get_stack(ctx, frames, sizeof(frames), 0);
	u32 i;

	if (!fault || bytes <= 0)
		return true; /* not known */
	for (i = 0; i < KERNEL_FRAMES && i * sizeof(*frames) < bytes; i++)
		if (frames[i] - fault < ENTRY_BYTES || (kernel && frames[i] - kernel < ENTRY_BYTES))
			return true;
	return bytes == sizeof(frames);
}

/* Reports whether the kernel handles a page fault in an enclave. It counts most faults at their end, but not one that ends in a
 * signal or in the exception handler of the vDSO. After such a fault the thread may return to the enclave, so the stack decides. */
static __always_inline bool fault_goes_on(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 *n = bpf_task_storage_get(&faulting, task, NULL, 0);

	if (!n || *n != page_faults(task))
		return false;
	if (in_page_fault(ctx))
		return true;
	*n = 0;
	return false;
}

/* Tests hide the variables. */
const volatile bool hides_irq_regs;

/* Reports whether an interrupt has not interrupted the kernel. Otherwise the thread had left its enclave before. Only the
 * handlers of the timer and of devices set the variable. Without it, a thread whose page fault goes on is in the kernel. */
static __always_inline bool from_user(void *ctx, struct pt_regs *regs)
{
	unsigned long cpu = bpf_get_smp_processor_id(), offset = 0, now = 0;

	if (hides_irq_regs || !&__irq_regs || !&__per_cpu_offset)
		return !fault_goes_on(ctx);
	bpf_probe_read_kernel(&offset, sizeof(offset),
			      (void *)&__per_cpu_offset + cpu * sizeof(offset));
	bpf_probe_read_kernel(&now, sizeof(now), (void *)&__irq_regs + offset);
	return now == (unsigned long)regs;
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(aex_page_fault, unsigned long address, struct pt_regs___aex *regs, unsigned long code)
{
	if (!IS_AEX(regs))
		return 0;
	fault_begins();
	left_enclave(ctx, regs, CAUSE_PAGE_FAULT);
	return 0;
}

/* An interrupt. told is set if its handler records what it has interrupted. */
static __always_inline int interrupt(void *ctx, u32 cause, bool told)
{
	struct pt_regs___aex *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

	if (IS_AEX(regs) && (told ? from_user(ctx, (void *)regs) : !fault_goes_on(ctx)))
		left_enclave(ctx, regs, cause);
	return 0;
}

SEC("tp_btf/local_timer_entry") int aex_timer(void *ctx)
{
	return interrupt(ctx, CAUSE_TIMER, true);
}

SEC("tp_btf/irq_handler_entry") int aex_device(void *ctx)
{
	return interrupt(ctx, CAUSE_DEVICE, true);
}

SEC("tp_btf/reschedule_entry") int aex_reschedule(void *ctx)
{
	return interrupt(ctx, CAUSE_RESCHEDULE, false);
}

SEC("tp_btf/call_function_entry") int aex_function(void *ctx)
{
	return interrupt(ctx, CAUSE_OTHER, false);
}

SEC("tp_btf/call_function_single_entry") int aex_function_single(void *ctx)
{
	return interrupt(ctx, CAUSE_OTHER, false);
}

SEC("tp_btf/irq_work_entry") int aex_work(void *ctx)
{
	return interrupt(ctx, CAUSE_OTHER, false);
}

#endif
