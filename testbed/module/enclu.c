// SPDX-License-Identifier: GPL-2.0-only
/*
 * ENCLU: entering, resuming and leaving. SDM "SGX Instruction References", ENCLU leaves.
 *
 * Runs with interrupts off in the #UD that ENCLU raises.
 */
#include "swsgx.h"

/* Returns 0 if a TCS can be entered or resumed now. */
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

/* Runs the leaf in EAX. Counts it when it is executed, but not when an operand must be faulted in first. */
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
