// SPDX-License-Identifier: GPL-2.0-only
/* ENCLS: building, starting and removing enclaves. SDM "SGX Instruction References", ENCLS leaves. */
#include "swsgx.h"

#include <crypto/sha2.h>

static int einit_ret, einit_times;
module_param(einit_ret, int, 0644);
MODULE_PARM_DESC(einit_ret, "error that EINIT returns while einit_times is not 0");
module_param(einit_times, int, 0644);
MODULE_PARM_DESC(einit_times, "number of times that EINIT fails");

/* ECREATE: the consistency checks of the SDM's operation section. */
static bool secs_ok(struct sgx_secs *s)
{
	u32 frame = xsave_size(s->xfrm) + SGX_SSA_GPRS_SIZE + 16;

	return s->size >= 2 * PAGE_SIZE && is_power_of_2(s->size) && !(s->base & (s->size - 1)) &&
	       s->ssa_frame_size && (u64)s->ssa_frame_size << PAGE_SHIFT >= frame &&
	       (s->xfrm & 3) == 3 && !(xcr0 && (s->xfrm & ~xcr0)) &&
	       !(s->miscselect & SGX_MISC_RESERVED_MASK) && (s->attributes & SGX_ATTR_MODE64BIT) &&
	       !(s->attributes & (SGX_ATTR_RESERVED_MASK | SGX_ATTR_INIT));
}

static int ecreate(struct sgx_pageinfo *pi, u64 addr)
{
	static u64 next_eid;
	struct epcm *e = epcm_va(addr);

	if (!e || e->valid)
		return PF;
	if (!secs_ok((void *)pi->contents))
		return GP;
	memcpy(e->va, (void *)pi->contents, PAGE_SIZE);
	epcm_set(e, NULL, SGX_PAGE_TYPE_SECS, 0, 0);
	e->epoch = 1;
	e->eid = *secs_eid(e->va) = ++next_eid;
	measure_create(e->va);
	return 0;
}

static int eadd(struct sgx_pageinfo *pi, u64 addr)
{
	struct epcm *e = epcm_va(addr), *secs = epcm_va(pi->secs);
	struct sgx_secinfo *si = (void *)pi->metadata;
	u8 type = (si->flags & SGX_SECINFO_PAGE_TYPE_MASK) >> 8;
	struct sgx_secs *s;

	if (!e || e->valid || !is_type(secs, SGX_PAGE_TYPE_SECS))
		return PF;
	s = secs->va;
	if (pi->addr - s->base >= s->size || (s->attributes & SGX_ATTR_INIT) ||
	    (type != SGX_PAGE_TYPE_REG && type != SGX_PAGE_TYPE_TCS))
		return GP;
	memcpy(e->va, (void *)pi->contents, PAGE_SIZE);
	measure_add(s, pi->addr - s->base, si);
	return add_page(e, secs, si->flags, pi->addr);
}

static int eextend(u64 secs, u64 addr)
{
	struct epcm *e = epcm_va(addr);
	struct sgx_secs *s;

	if (!e || !e->valid || !e->secs || e->secs != epcm_va(secs))
		return PF;
	s = e->secs->va;
	if (s->attributes & SGX_ATTR_INIT)
		return GP;
	measure_extend(s, e->linaddr - s->base + (addr & 0xf00), (void *)(addr & ~0xffull));
	return 0;
}

static bool masked_equal(u64 a, u64 b, u64 mask)
{
	return (a & mask) == (b & mask);
}

/* The RSA signature is not checked: every signer is accepted. */
static int einit(struct sgx_sigstruct *sig, u64 addr)
{
	struct sgx_sigstruct_body *body = &sig->body;
	struct epcm *e = epcm_va(addr);
	struct sgx_secs *s;
	int ret;

	if (!is_type(e, SGX_PAGE_TYPE_SECS))
		return PF;
	s = e->va;
	if (s->attributes & SGX_ATTR_INIT)
		return GP;
	if (einit_times > 0) {
		einit_times--;
		return einit_ret;
	}
	if (!masked_equal(s->attributes, body->attributes, body->attributes_mask) ||
	    !masked_equal(s->xfrm, body->xfrm, body->xfrm_mask) ||
	    !masked_equal(s->miscselect, body->miscselect, body->misc_mask))
		return ERR_INVALID_ATTRIBUTE;
	ret = measure_check(s, sig);
	if (ret)
		return ret;
	sha256(sig->modulus, sizeof(sig->modulus), (u8 *)s->mrsigner);
	s->isv_prod_id = body->isvprodid;
	s->isv_svn = body->isvsvn;
	s->attributes |= SGX_ATTR_INIT;
	cpuid_arm_enclave(e);
	return 0;
}

static int eremove(u64 addr)
{
	struct epcm *e = epcm_va(addr);

	if (!e)
		return PF;
	if (!e->valid)
		return 0;
	if (e->type == SGX_PAGE_TYPE_SECS && e->children)
		return SGX_CHILD_PRESENT;
	epcm_clear(e);
	return 0;
}

/* EDBGRD and EDGBWR: 8 bytes of a debug enclave. */
static int edbg(struct pt_regs *r, bool write)
{
	struct epcm *e = epcm_va(r->cx);

	if (!e || !e->valid || !e->secs || (r->cx & 7))
		return PF;
	if (!(((struct sgx_secs *)e->secs->va)->attributes & SGX_ATTR_DEBUG))
		return GP;
	if (write)
		*(u64 *)r->cx = r->bx;
	else
		r->bx = *(u64 *)r->cx;
	return 0;
}

static int encls_leaf(struct pt_regs *r)
{
	switch ((u32)r->ax) {
	case ECREATE:
		return ecreate((void *)r->bx, r->cx);
	case EADD:
		return eadd((void *)r->bx, r->cx);
	case EINIT:
		return einit((void *)r->bx, r->cx);
	case EREMOVE:
		return eremove(r->cx);
	case EDGBRD: /* as <asm/sgx.h> spells it */
		return edbg(r, false);
	case EDGBWR:
		return edbg(r, true);
	case EEXTEND:
		return eextend(r->bx, r->cx);
	case ELDB:
		return eld((void *)r->bx, r->cx, (u64 *)r->dx, true);
	case ELDU:
		return eld((void *)r->bx, r->cx, (u64 *)r->dx, false);
	case EBLOCK:
		return eblock(r->cx);
	case EPA:
		return epa(r->cx, r->bx);
	case EWB:
		return ewb((void *)r->bx, r->cx, (u64 *)r->dx);
	case ETRACK:
		return etrack(r->cx);
	case EAUG:
		return eaug((void *)r->bx, r->cx);
	case EMODPR:
		return emodpr((void *)r->bx, r->cx);
	case EMODT:
		return emodt((void *)r->bx, r->cx);
	}
	return GP;
}

/* Runs the leaf in EAX and counts it. */
int encls(struct pt_regs *r)
{
	u32 leaf = r->ax;
	int ret = encls_leaf(r);

	if (leaf < ENCLS_LEAVES) {
		count.encls[leaf] += !ret;
		count.encls_failed[leaf] += !!ret;
	}
	return ret;
}
