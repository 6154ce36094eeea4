// SPDX-License-Identifier: GPL-2.0-only
/*
 * ENCLU: entering, resuming and leaving. SDM "SGX Instruction References", ENCLU leaves.
 *
 * Runs with interrupts off in the #UD that ENCLU raises. An operand that is not resident is faulted in
 * on the way back to user mode, and the instruction runs again.
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

/* What the kernel does with a fault of user mode. */
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

/* What the last fault_in() of this processor asked for. */
u64 fault_in_address(void)
{
	return this_cpu_read(missing);
}

/* Asks for an operand; interrupts are off until the thread is on its way. */
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

/* The TCS that the current thread is in. The start time tells a thread from a later one at its address. */
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

/* Whether a TCS can be entered or resumed now. */
static int tcs_check(struct epcm *e, bool resume)
{
	struct sgx_tcs *tcs = e->va;
	struct sgx_secs *s;

	if (e->type != SGX_PAGE_TYPE_TCS || e->blocked || e->pending || e->modified)
		return PF;
	s = e->secs->va;
	if (!(s->attributes & SGX_ATTR_INIT) || e->task)
		return GP;
	if (resume ? !tcs->ssa_index : tcs->ssa_index >= tcs->nr_ssa_frames)
		return GP;
	return 0;
}

/* Finds the SSA frame that an AEX will use (EENTER) or the last one used (ERESUME). */
static int find_frame(struct epcm *e, bool resume)
{
	struct sgx_tcs *tcs = e->va;
	struct sgx_secs *s = e->secs->va;
	u64 size = (u64)s->ssa_frame_size * PAGE_SIZE;
	u64 frame = s->base + tcs->ssa_offset + size * (tcs->ssa_index - resume);
	u64 gpr = frame + size - sizeof(struct gprsgx);

	e->ssa = epcm_user(gpr);
	if (!e->ssa)
		return fault_in(gpr);
	e->xsave = epcm_user(frame);
	if (!e->xsave)
		return fault_in(frame);
	e->gpr = e->ssa->va + offset_in_page(gpr);
	return 0;
}

static int enter(struct pt_regs *r, bool resume)
{
	struct epcm *e = epcm_user(r->bx);
	u64 sp = r->sp, bp = r->bp;
	struct sgx_tcs *tcs;
	struct sgx_secs *s;
	int ret;

	if (inside() || (r->bx & ~PAGE_MASK))
		return GP;
	if (!e)
		return fault_in(r->bx);
	ret = tcs_check(e, resume) ?: find_frame(e, resume);
	if (ret)
		return ret;
	tcs = e->va;
	s = e->secs->va;
	if (resume && !xsave_get(e->xsave->va, s->xfrm))
		return GP;
	if (e->shown && tcs->ssa_index - resume <= e->shown_frame)
		cpuid_hide(e);
	e->aep = r->cx;
	get_bases(&e->fs, &e->gs);
	if (resume) {
		gpr_copy(r, e->gpr, true);
		set_bases(e->gpr->fsbase, e->gpr->gsbase);
		tcs->ssa_index--;
	} else {
		r->ax = tcs->ssa_index;
		r->cx = r->ip + 3;
		r->ip = s->base + tcs->entry_offset;
		set_bases(s->base + tcs->fs_offset, s->base + tcs->gs_offset);
	}
	e->gpr->ursp = sp;
	e->gpr->urbp = bp;
	e->task = current;
	e->task_start = current->start_time;
	e->enter_epoch = e->secs->epoch;
	e->xfrm = s->xfrm;
	list_add(&e->busy, &busy);
	mode_enter(s->xfrm);
	return 0;
}

static int eexit(struct pt_regs *r)
{
	struct epcm *tcs = inside();

	if (!tcs)
		return GP;
	r->ip = r->bx;
	r->cx = tcs->aep;
	set_bases(tcs->fs, tcs->gs);
	tcs_leave(tcs);
	mode_leave();
	return 0;
}

/* An operand inside the enclave: its kernel address, or NULL and why in *ret. */
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

static int enclu_leaf(struct pt_regs *r)
{
	switch ((u32)r->ax) {
	case EREPORT:
		return ereport(r);
	case EGETKEY:
		return egetkey(r);
	case EENTER:
		return enter(r, false);
	case ERESUME:
		return enter(r, true);
	case EEXIT:
		return eexit(r);
	case EACCEPT:
		return eaccept(r);
	case EMODPE:
		return emodpe(r);
	case EACCEPTCOPY:
		return eacceptcopy(r);
	}
	return GP;
}

/* Runs the leaf in EAX and counts it once it is executed: not while an operand is faulted in. */
int enclu(struct pt_regs *r)
{
	u32 leaf = r->ax;
	u64 ip = r->ip, target = r->bx;
	int ret = enclu_leaf(r);

	if (leaf < ENCLU_LEAVES && ret != RETRY) {
		count.enclu[leaf] += ret >= 0;
		count.enclu_failed[leaf] += ret < 0;
	}
	if (leaf != ERESUME || ret)
		note(leaf < ENCLU_LEAVES ? "rgERXapc"[leaf] : '?', ret, ip, target);
	return ret;
}
