// SPDX-License-Identifier: GPL-2.0-only
/*
 * The thread that executes ENCLU: the enclave that it is in, its registers, and its operands. An operand that is not
 * resident is faulted in on the way back to user mode, and the instruction runs again.
 */
#include "swsgx.h"

#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/task_work.h>
#include <linux/uaccess.h>
#include <asm/fsgsbase.h>

struct fault_work {
	struct callback_head work;
	unsigned long addr;
};

/* Handles a fault of user mode as the kernel does. */
void user_fault(struct pt_regs *r, int trapnr, int err, unsigned long addr)
{
	if (!sym.fixup_vdso(r, trapnr, err, addr))
		sym.force_sig(trapnr == X86_TRAP_UD ? SIGILL : SIGSEGV);
}

static void fault_in_work(struct callback_head *work)
{
	struct fault_work *w = container_of(work, struct fault_work, work);
	unsigned long addr = w->addr;
	u8 byte;

	kfree(w);
	if (get_user(byte, (u8 __user *)addr)) /* sgx_vma_fault() runs under this */
		user_fault(task_pt_regs(current), X86_TRAP_PF, X86_PF_USER, addr);
}

static DEFINE_PER_CPU(u64, missing);

/* Returns the address of the last fault_in() on this processor. */
u64 fault_in_address(void)
{
	return this_cpu_read(missing);
}

/* Schedules the page fault for an operand. Interrupts are off until the thread returns to user mode. */
int fault_in(unsigned long addr)
{
	struct fault_work *w = kmalloc(sizeof(*w), GFP_ATOMIC);

	if (!w)
		return GP;
	count.faultin++;
	this_cpu_write(missing, addr);
	w->addr = addr;
	init_task_work(&w->work, fault_in_work);
	sym.task_work_add(current, &w->work, TWA_RESUME);
	return RETRY;
}

/* Returns the TCS that the current thread is in. The start time distinguishes a thread from a later one
 * with the same task_struct address. */
struct epcm *inside(void)
{
	struct epcm *tcs;

	list_for_each_entry(tcs, &busy,
			    busy) if (tcs->task == current &&
				      tcs->task_start == current->start_time) return tcs;
	return NULL;
}

void set_bases(u64 fs, u64 gs)
{
	x86_fsbase_write_cpu(fs);
	wrmsrl(MSR_KERNEL_GS_BASE, gs);
	current->thread.fsbase = fs;
	current->thread.gsbase = gs;
}

void get_bases(u64 *fs, u64 *gs)
{
	*fs = x86_fsbase_read_cpu();
	rdmsrl(MSR_KERNEL_GS_BASE, *gs);
}

void gpr_copy(struct pt_regs *r, struct gprsgx *g, bool load)
{
	const u64 flags = 0xcd5; /* the status flags and DF */

#define COPY(f)                                                                                    \
	do {                                                                                       \
		if (load)                                                                          \
			r->f = g->f;                                                               \
		else                                                                               \
			g->f = r->f;                                                               \
	} while (0)
	COPY(ax);
	COPY(cx);
	COPY(dx);
	COPY(bx);
	COPY(sp);
	COPY(bp);
	COPY(si);
	COPY(di);
	COPY(ip);
	COPY(r8);
	COPY(r9);
	COPY(r10);
	COPY(r11);
	COPY(r12);
	COPY(r13);
	COPY(r14);
	COPY(r15);
#undef COPY
	if (load)
		r->flags = (r->flags & ~flags) | (g->flags & flags);
	else
		g->flags = r->flags;
}

/* Returns the kernel address of an operand inside the enclave. If it returns NULL, *ret is the reason. */
void *operand(struct epcm *tcs, u64 addr, u64 align, int *ret)
{
	struct sgx_secs *s = tcs->secs->va;
	struct epcm *e;

	if ((addr & (align - 1)) || addr - s->base >= s->size) {
		*ret = GP;
		return NULL;
	}
	e = epcm_user(addr);
	if (!e) {
		*ret = fault_in(addr);
		return NULL;
	}
	if (e->type != SGX_PAGE_TYPE_REG || e->secs != tcs->secs || e->blocked || e->pending) {
		*ret = GP;
		return NULL;
	}
	return e->va + offset_in_page(addr);
}
