// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hooks that report ENCLS, ENCLU and the causes of an AEX: the die notifier of #UD, ftrace hooks of
 * three functions, and tracepoints.
 *
 * ftrace is used instead of kprobes. An IPI during another kprobe handler would only be counted as
 * "missed", and the driver's kick would be lost.
 */
#include "swsgx.h"

#include <linux/ftrace.h>
#include <linux/kdebug.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>

static bool aex_tick = true, aex_irq = true, aex_pf = true;
module_param(aex_tick, bool, 0444);
MODULE_PARM_DESC(aex_tick, "the timer interrupt causes an AEX, as in hardware");
module_param(aex_irq, bool, 0444);
MODULE_PARM_DESC(aex_irq, "other interrupts cause an AEX, as in hardware");
module_param(aex_pf, bool, 0444);
MODULE_PARM_DESC(aex_pf, "every page fault causes an AEX, as in hardware");

/*
 * A thread at the start of a #GP has interrupts on and can sleep. It may have to leave the enclave before
 * on_exception() runs. Then its instruction is emulated first, and on_exception() drops the signal for
 * the threads in this list. A stale entry costs one retry of a faulting instruction.
 */
static struct task_struct *swallow[64];

static bool swap_swallow(struct task_struct *old, struct task_struct *new)
{
	unsigned long flags;
	bool found = false;
	int i;

	raw_spin_lock_irqsave(&lock, flags);
	for (i = 0; i < ARRAY_SIZE(swallow) && !found; i++)
		if (swallow[i] == old) {
			swallow[i] = new;
			found = true;
		}
	raw_spin_unlock_irqrestore(&lock, flags);
	return found;
}

/*
 * Reports whether an interrupt came from user mode. Its handler then runs on the thread's stack, otherwise
 * on the interrupt stack. An interrupt of kernel mode must not cause an AEX. If the thread is inside, the
 * kernel is at the start of its #GP or #MF, whose own AEX reports it in EXITINFO.
 */
static bool from_user(void)
{
	int here;

	return object_is_on_stack(&here);
}

static notrace bool handled(void)
{
	return true;
}

/* Reports whether a #GP of user mode comes from an emulated instruction and is handled completely. */
static bool gp_is_ours(struct pt_regs *r)
{
	if (swap_swallow(current, NULL))
		return true;
	if (list_empty(&busy))
		return false;
	if (is_rdtsc(r)) {
		bump(&count.rdtsc);
		aex(r, AEX_EXC, X86_TRAP_UD, 0, 0);
		user_fault(r, X86_TRAP_UD, 0, 0);
		return true;
	}
	return again(r);
}

/* fixup_vdso_exception(regs, trapnr, error_code, address): an exception of user mode. */
static void on_exception(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
			 struct ftrace_regs *fregs)
{
	struct pt_regs *f = ftrace_get_regs(fregs), *r = (struct pt_regs *)f->di;
	unsigned long flags;

	if (!user_mode(r))
		return;
	local_irq_save(flags); /* on_kick() must run before or after this whole section */
	if (f->si == X86_TRAP_GP && gp_is_ours(r))
		f->ip = (unsigned long)handled; /* instead of fixup_vdso_exception() */
	else
		aex(r, AEX_EXC, f->si, f->dx, f->cx);
	local_irq_restore(flags);
}

/* arch_do_signal_or_restart(regs) */
static void on_signal(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
		      struct ftrace_regs *fregs)
{
	aex((struct pt_regs *)ftrace_get_regs(fregs)->di, AEX_SIG, -1, 0, 0);
}

/* sgx_ipi_cb(): the driver makes every thread of an enclave leave. */
static void on_kick(unsigned long ip, unsigned long parent, struct ftrace_ops *op,
		    struct ftrace_regs *fregs)
{
	struct pt_regs *r = task_pt_regs(current);

	bump(&count.ipi);
	if (list_empty(&busy) || (current->flags & PF_KTHREAD))
		return;
	if (from_user()) {
		aex(r, AEX_KICK, -1, 0, 0);
	} else if (user_mode(r)) { /* the driver cannot wait */
		if (again(r)) {
			swap_swallow(NULL, current);
			aex(r, AEX_KICK, -1, 0, 0);
		} else {
			aex(r, AEX_KICK, X86_TRAP_GP, 0, 0);
		}
	}
}

static struct {
	const char *name;
	struct ftrace_ops ops;
} functions[] = {
	{"fixup_vdso_exception",
	 {.func = on_exception, .flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY}},
	{"arch_do_signal_or_restart", {.func = on_signal, .flags = FTRACE_OPS_FL_SAVE_REGS}},
	{"sgx_ipi_cb", {.func = on_kick}},
};

static void on_switch(void *data, bool preempt, struct task_struct *prev, struct task_struct *next,
		      unsigned int state)
{
	struct pt_regs *r = task_pt_regs(prev);

	if (!list_empty(&busy) && !(prev->flags & PF_KTHREAD) && user_mode(r)) {
		if (again(r))
			swap_swallow(NULL, current);
		aex(r, AEX_SCHED, -1, 0, 0);
	}
	mode_leave(); /* in every case */
}

/* At an interrupt: the thread leaves, so that a sampling profiler sees the AEP. */
static void interrupt(enum aex_cause why)
{
	if (!list_empty(&busy) && !(current->flags & PF_KTHREAD) && from_user())
		aex(task_pt_regs(current), why, -1, 0, 0);
}

static void on_timer(void *data, int vector)
{
	interrupt(AEX_TIMER);
}

static void on_call(void *data, int vector)
{
	interrupt(AEX_CALL);
}

static void on_irq(void *data, int irq, void *action)
{
	interrupt(AEX_DEVICE);
}

/*
 * The handler of this interrupt has no stack of its own. It has interrupted the kernel if it runs on another stack than the
 * thread's, such as that of interrupts, or if there is a second set of saved registers between here and the thread's, with
 * the kernel's segments and a stack pointer between both. SS is 0 where the kernel was entered by an exception: the
 * processor loads that on a change to ring 0. What looks like one but is the rest of an earlier call only delays the AEX
 * until the thread is scheduled out.
 */
static void on_reschedule(void *data, int vector)
{
	unsigned long *w, *end = (unsigned long *)task_pt_regs(current);

	if (list_empty(&busy) || (current->flags & PF_KTHREAD) ||
	    current_stack_pointer - (unsigned long)task_stack_page(current) >= THREAD_SIZE)
		return;
	for (w = (unsigned long *)current_stack_pointer; w + 3 < end; w++)
		if (w[0] == __KERNEL_CS && (w[3] == __KERNEL_DS || !w[3]) &&
		    w[2] > (unsigned long)w && w[2] <= (unsigned long)end)
			return;
	aex(task_pt_regs(current), AEX_RESCHED, -1, 0, 0);
}

/* Runs before the kernel handles the fault. The thread is then at the AEP, as in hardware. */
static void on_page_fault(void *data, unsigned long addr, struct pt_regs *r, unsigned long err)
{
	bool in = aex(r, AEX_PF, X86_TRAP_PF, err, addr);

	/*
	 * While ksgxd evicts a page, a thread that uses it faults repeatedly. One thread of QEMU runs
	 * all processors one after the other, for 0.1 s each. PAUSE ends these 0.1 s.
	 */
	if (in)
		cpu_relax();
}

static const struct {
	const char *name;
	void *probe;
	bool *on; /* NULL: always */
} points[] = {
	{"sched_switch", on_switch},
	{"local_timer_entry", on_timer, &aex_tick},
	{"reschedule_entry", on_reschedule, &aex_irq},
	{"call_function_entry", on_call, &aex_irq},
	{"call_function_single_entry", on_call, &aex_irq},
	{"irq_work_entry", on_call, &aex_irq},
	{"irq_handler_entry", on_irq, &aex_irq},
	{"page_fault_user", on_page_fault, &aex_pf},
};

static void register_point(struct tracepoint *tp, void *found)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(points); i++)
		if (!strcmp(tp->name, points[i].name))
			*(int *)found += (points[i].on && !*points[i].on) ||
					 !tracepoint_probe_register(tp, points[i].probe, NULL);
}

/* Handles a #UD in the kernel, from ENCLS. */
static int ud_kernel(struct pt_regs *r)
{
	u8 op[3];
	int ret;

	if (copy_from_kernel_nofault(op, (void *)r->ip, 3) || op[0] != 0x0f || op[1] != 0x01 ||
	    op[2] != 0xcf)
		return NOTIFY_DONE;
	raw_spin_lock(&lock);
	ret = encls(r);
	raw_spin_unlock(&lock);
	if (ret < 0) /* EX_TYPE_FAULT_SGX sets RAX and skips the instruction */
		return sym.fixup_exception(r, -ret, 0, 0) ? NOTIFY_STOP : NOTIFY_DONE;
	r->ax = ret;
	r->flags = ret ? r->flags | X86_EFLAGS_ZF : r->flags & ~X86_EFLAGS_ZF;
	r->ip += 3;
	return NOTIFY_STOP;
}

/* Handles a #UD in user mode, from ENCLU or from another instruction. */
static int ud_user(struct pt_regs *r)
{
	u64 operand = r->bx;
	struct epcm *tcs;
	u8 op[3];
	int ret;

	/*
	 * The processor has just executed from this page. Since then the driver has reclaimed it, or a uprobe replaces
	 * it: the kernel unmaps a page of code while it exchanges it. Execute the instruction again.
	 */
	if (copy_from_user_nofault(op, (void __user *)r->ip, 3))
		return NOTIFY_STOP;
	if (op[0] != 0x0f || op[1] != 0x01 || op[2] != 0xd7) {
		raw_spin_lock(&lock);
		tcs = inside();
		if (tcs)
			cpuid_show(tcs, r->ip);
		raw_spin_unlock(&lock);
		/* must precede an AEX by an interrupt, which has no EXITINFO */
		aex(r, AEX_EXC, X86_TRAP_UD, 0, 0);
		return NOTIFY_DONE;
	}
	raw_spin_lock(&lock);
	ret = enclu(r);
	raw_spin_unlock(&lock);
	if (ret == RETRY) /* a thread inside leaves before its operand is faulted in */
		aex(r, AEX_OPERAND, X86_TRAP_PF, X86_PF_USER, fault_in_address());
	if (ret == PF)
		user_fault(r, X86_TRAP_PF, X86_PF_SGX | X86_PF_USER | X86_PF_PROT, operand);
	else if (ret == GP)
		user_fault(r, X86_TRAP_GP, 0, 0);
	return NOTIFY_STOP;
}

static int on_die(struct notifier_block *nb, unsigned long val, void *data)
{
	struct die_args *a = data;
	struct pt_regs *r = a->regs;
	bool ud = val == DIE_TRAP && a->trapnr == X86_TRAP_UD;

	if (ud)
		return user_mode(r) ? ud_user(r) : ud_kernel(r);
	if (user_mode(r) && (val == DIE_INT3 || val == DIE_TRAP))
		aex(r, AEX_EXC, a->trapnr, a->err, 0);
	return NOTIFY_DONE;
}

static struct notifier_block die_notifier = {.notifier_call = on_die, .priority = 100};

int __init hooks_register(void)
{
	int i, found = 0, ret = register_die_notifier(&die_notifier);

	for (i = 0; !ret && i < ARRAY_SIZE(functions); i++) {
		ret = ftrace_set_filter_ip(&functions[i].ops, sym.lookup(functions[i].name), 0, 0);
		ret = ret ?: register_ftrace_function(&functions[i].ops);
		if (ret)
			pr_err("attaching to %s: error %d\n", functions[i].name, ret);
	}
	for_each_kernel_tracepoint(register_point, &found);
	if (found != ARRAY_SIZE(points)) {
		pr_err("%d of %zu tracepoints could be used\n", found, ARRAY_SIZE(points));
		ret = ret ?: -ENOENT;
	}
	return ret;
}
