/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Why threads leave enclaves asynchronously (AEX). The tracepoints of page faults and interrupts run in the thread that was
 * interrupted. If it was in an enclave, the processor has replaced its registers before it entered the kernel (Intel SDM
 * volume 3D, "Asynchronous Enclave Exit"): RAX is ERESUME, RCX and RIP are the address of the AEP, and R11 is 0. A thread
 * that returns from a system call has RCX = RIP too, but R11 is then its flags, which are never 0.
 *
 * So each event reads three registers and is finished, unless it has hit an enclave.
 */
#ifndef TEESCOPE_INTERRUPTS_H
#define TEESCOPE_INTERRUPTS_H

enum { TICK_NS = 10000000 };

/* Processes with an enclave. User space adds them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32); /* tgid */
	__type(value, struct interrupted);
} interrupted SEC(".maps");

/* For threads of processes with breakpoints. LRU, because nothing removes the threads that end. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct thread_key);
	__type(value, struct left);
} left SEC(".maps");

/* The registers that the current interrupt has saved, on each CPU (arch/x86/kernel/irq.c). Weak, because kernels without
 * CONFIG_KALLSYMS_ALL hide the address, and others hide it from an agent without CAP_SYSLOG. */
extern void __irq_regs __ksym __weak;
extern void __per_cpu_offset __ksym __weak;

/* Reports whether an interrupt has not interrupted the kernel. Otherwise the thread had left its enclave before. Only the
 * handlers of the timer and of devices set the variable. */
static __always_inline bool from_user(struct pt_regs *regs)
{
	unsigned long cpu = bpf_get_smp_processor_id(), offset = 0, now = 0;

	if (!&__irq_regs || !&__per_cpu_offset)
		return true;
	bpf_probe_read_kernel(&offset, sizeof(offset),
			      (void *)&__per_cpu_offset + cpu * sizeof(offset));
	bpf_probe_read_kernel(&now, sizeof(now), (void *)&__irq_regs + offset);
	return now == (unsigned long)regs;
}

/* Returns the interval in which ENCLUs with breakpoints in a process are counted now, or 0. */
static __always_inline u64 counts_at(u32 door, void *map, u32 tgid)
{
	u64 *cookie = bpf_map_lookup_elem(&breakpoint, &door);
	struct file_state *state;
	u32 file;

	if (!cookie || !bpf_map_lookup_elem(map, &tgid))
		return 0;
	file = COOKIE_FILE(*cookie);
	state = bpf_map_lookup_elem(&files, &file);
	return state ? state->open : 0;
}

/* A later thread may have the same ID. */
static __always_inline struct thread_key this_thread(void)
{
	struct task_struct___gs *task = (void *)bpf_get_current_task();
	struct thread_key key = {.tid = (u32)bpf_get_current_pid_tgid()};

	key.start = BPF_CORE_READ(task, start_boottime);
	return key;
}

/* Remembers why the current thread has left its enclave, until it resumes. What follows before that has not hit the
 * enclave. What is remembered of an earlier interval is replaced, because the thread may have resumed since. */
static __always_inline void leave_by(u32 cause, u32 tgid)
{
	struct left new = {.cause = 1 + cause}, *l;
	struct thread_key key;

	new.interval[DOOR_VDSO] = counts_at(DOOR_VDSO, &crossed, tgid);
	new.interval[DOOR_OWN] = counts_at(DOOR_OWN, &crossed_own, tgid);
	if (!new.interval[DOOR_VDSO] && !new.interval[DOOR_OWN])
		return;
	key = this_thread();
	l = bpf_map_lookup_elem(&left, &key);
	if (!l)
		bpf_map_update_elem(&left, &key, &new, BPF_ANY);
	else if (l->interval[DOOR_VDSO] != new.interval[DOOR_VDSO] ||
		 l->interval[DOOR_OWN] != new.interval[DOOR_OWN])
		*l = new; /* only this thread uses it */
	else if (!l->cause)
		l->cause = 1 + cause;
}

/* Returns what is remembered of the current thread in this interval of a door, or NULL. */
static __always_inline struct left *left_in(u32 door, u64 interval)
{
	struct thread_key key = this_thread();
	struct left *l = bpf_map_lookup_elem(&left, &key);

	return l && door < DOORS && l->interval[door] == interval ? l : NULL;
}

/* Reports whether the current process is the one that user space has added. User space removes a process that has ended only
 * at its next look, and a later process with its ID may be another tenant's. /proc/PID/stat has the start of a process in
 * ticks of USER_HZ, which is 100 on these architectures. */
static __always_inline bool is_same(struct interrupted *of)
{
	struct task_struct___gs *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, group_leader, start_boottime) / TICK_NS == of->started;
}

/* Counts an event that has hit an enclave. */
static __noinline void hit(u32 cause)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct interrupted *of = bpf_map_lookup_elem(&interrupted, &tgid);

	if (of && cause < CAUSES && is_same(of))
		__sync_fetch_and_add(&of->n[cause], 1);
	leave_by(cause, tgid);
}

static __always_inline bool in_enclave(struct pt_regs___aex *regs)
{
	return regs->ax == ERESUME && regs->cx == regs->ip && !regs->r11;
}

/* A breakpoint at EENTER. A thread that enters although it has not resumed handles the cause in the enclave. */
static __always_inline void enter(struct crossings *n, struct left *l)
{
	__sync_fetch_and_add(&n->enters, 1);
	if (l && l->cause) {
		l->outer = l->cause;
		l->cause = 0;
	}
}

/* A breakpoint at ERESUME. */
static __always_inline void resume(struct crossings *n, struct left *l)
{
	u32 by = 0;

	__sync_fetch_and_add(&n->resumes, 1);
	if (l && l->cause) {
		by = l->cause;
		l->cause = 0;
	} else if (l) {
		by = l->outer;
		l->outer = 0;
	}
	by = by ? by - 1 : CAUSE_OTHER;
	__sync_fetch_and_add(&n->causes[by & (CAUSE_PLACES - 1)], 1);
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(aex_page_fault, unsigned long address, struct pt_regs___aex *regs, unsigned long code)
{
	if (in_enclave(regs))
		hit(CAUSE_PAGE_FAULT);
	return 0;
}

/* An interrupt. told is set if its handler records what it has interrupted. */
static __always_inline int interrupt(u32 cause, bool told)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());

	if (in_enclave((void *)regs) && (!told || from_user(regs)))
		hit(cause);
	return 0;
}

SEC("tp_btf/local_timer_entry") int aex_timer(void *ctx)
{
	return interrupt(CAUSE_TIMER, true);
}

SEC("tp_btf/irq_handler_entry") int aex_device(void *ctx)
{
	return interrupt(CAUSE_DEVICE, true);
}

SEC("tp_btf/reschedule_entry") int aex_reschedule(void *ctx)
{
	return interrupt(CAUSE_RESCHEDULE, false);
}

SEC("tp_btf/call_function_entry") int aex_function(void *ctx)
{
	return interrupt(CAUSE_OTHER, false);
}

SEC("tp_btf/call_function_single_entry") int aex_function_single(void *ctx)
{
	return interrupt(CAUSE_OTHER, false);
}

SEC("tp_btf/irq_work_entry") int aex_work(void *ctx)
{
	return interrupt(CAUSE_OTHER, false);
}

#endif
