// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous enclave exit; SDM "Asynchronous Enclave Exit". The exit is emulated only where software
 * can observe it. hooks.c calls aex() before an exception or a signal is delivered, when an interrupt
 * arrives inside, when the thread is scheduled out, and when the driver kicks the processor.
 */
#include "swsgx.h"

/* EXITINFO; SDM "EXITINFO Structure": vector, type (3 exception, 6 software) and a valid bit. */
static u32 exitinfo(int trapnr)
{
	return trapnr | (trapnr == X86_TRAP_BP ? 6 : 3) << 8 | BIT(31);
}

/*
 * Page and protection faults are reported only to enclaves with MISCSELECT.EXINFO. The address and the
 * error code are just below the GPR area.
 */
static bool report_fault(struct epcm *tcs, int trapnr, u32 err, u64 addr)
{
	struct sgx_secs *s = tcs->secs->va;
	u64 *exinfo = (void *)tcs->gpr - 16;

	if (trapnr != X86_TRAP_PF && trapnr != X86_TRAP_GP)
		return true;
	if (!(s->miscselect & SGX_MISC_EXINFO))
		return false;
	exinfo[0] = trapnr == X86_TRAP_PF ? addr : 0;
	exinfo[1] = err;
	return true;
}

/* The synthetic state of the SDM: the registers contain no value of the enclave. */
static void synthetic(struct pt_regs *r, struct epcm *tcs, u64 sp, u64 bp)
{
	r->r8 = r->r9 = r->r10 = r->r11 = r->r12 = r->r13 = r->r14 = r->r15 = 0;
	r->dx = r->si = r->di = 0;
	r->sp = sp;
	r->bp = bp;
	r->ax = ERESUME;
	r->bx = tcs->linaddr;
	r->cx = r->ip = tcs->aep;
	r->flags &= ~(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF |
		      X86_EFLAGS_SF | X86_EFLAGS_OF | X86_EFLAGS_RF);
	set_bases(tcs->fs, tcs->gs);
}

static bool can_save(struct pt_regs *r, struct epcm *tcs)
{
	struct sgx_secs *s = tcs->secs->va;

	return tcs->ssa->valid && tcs->ssa->secs == tcs->secs && tcs->xsave->valid &&
	       tcs->xsave->secs == tcs->secs && r->ip - s->base < s->size;
}

static void leave(struct pt_regs *r, struct epcm *tcs, int trapnr, u32 err, u64 addr)
{
	struct gprsgx *g = tcs->gpr;
	u64 sp = g->ursp, bp = g->urbp;

	gpr_copy(r, g, false);
	get_bases(&g->fsbase, &g->gsbase);
	xsave_put(tcs->xsave->va, tcs->xfrm);
	g->exitinfo = trapnr >= 0 && report_fault(tcs, trapnr, err, addr) ? exitinfo(trapnr) : 0;
	((struct sgx_tcs *)tcs->va)->ssa_index++;
	synthetic(r, tcs, sp, bp);
	tcs_leave(tcs);
	mode_leave();
}

/*
 * Lets the current thread leave the enclave if it is inside, and reports whether it was. trapnr is -1 if
 * no exception is reported. A run queue's lock may be held, so this code must not print.
 */
bool aex(struct pt_regs *r, enum aex_cause why, int trapnr, u32 err, u64 addr)
{
	unsigned long flags;
	struct epcm *tcs;
	bool left = false;

	if (list_empty(&busy) || !user_mode(r))
		return false;
	raw_spin_lock_irqsave(&lock, flags);
	tcs = inside();
	if (tcs && !can_save(r, tcs)) {
		count.aex_lost++;
	} else if (tcs) {
		count.aex[why]++;
		if (why < AEX_TIMER || why > AEX_SCHED)
			note('A', trapnr, r->ip, addr);
		leave(r, tcs, trapnr, err, addr);
		left = true;
	}
	raw_spin_unlock_irqrestore(&lock, flags);
	return left;
}
