// SPDX-License-Identifier: GPL-2.0-only
#include "swsgx.h"

/* Changing a running enclave: ENCLS EAUG, EMODPR, EMODT; ENCLU EACCEPT, EMODPE, EACCEPTCOPY. SDM
 * "Dynamic Memory Management" (SGX2).
 *
 * These leaves and EENTER keep and check the states of pages. The hardware also checks them at each
 * access. So here an enclave can use a page that it has not accepted.
 */

int eaug(struct sgx_pageinfo *pi, u64 addr)
{
	struct epcm *e = epcm_va(addr), *secs = epcm_va(pi->secs);
	struct sgx_secs *s;

	if (!e || e->valid || !is_type(secs, SGX_PAGE_TYPE_SECS))
		return PF;
	s = secs->va;
	if (pi->addr - s->base >= s->size || !(s->attributes & SGX_ATTR_INIT))
		return GP;
	memset(e->va, 0, PAGE_SIZE);
	add_page(e, secs, SGX_SECINFO_REG | SGX_SECINFO_R | SGX_SECINFO_W, pi->addr);
	e->pending = 1;
	return 0;
}

static int emod(struct epcm *e)
{
	if (!e || !e->valid || !e->secs)
		return PF;
	if (e->pending || e->modified)
		return SGX_PAGE_NOT_MODIFIABLE;
	return 0;
}

/* As for EWB: threads that entered before the next ETRACK may still use the old state. */
static void changed(struct epcm *e)
{
	e->block_epoch = e->secs->epoch;
}

/* Restricts permissions; the enclave accepts them. The driver relies on the #PF for other types. */
int emodpr(struct sgx_secinfo *si, u64 addr)
{
	struct epcm *e = epcm_va(addr);
	int ret = emod(e);

	if (ret)
		return ret;
	if (e->type != SGX_PAGE_TYPE_REG)
		return PF;
	cpuid_disarm(e);
	e->perm &= si->flags & SGX_SECINFO_PERMISSION_MASK;
	e->pr = 1;
	cpuid_arm(e);
	changed(e);
	return 0;
}

/* Changes the type, to TCS or to TRIM; the enclave accepts it. */
int emodt(struct sgx_secinfo *si, u64 addr)
{
	struct epcm *e = epcm_va(addr);
	u8 type = (si->flags & SGX_SECINFO_PAGE_TYPE_MASK) >> 8;
	int ret = emod(e);

	if (ret)
		return ret;
	if (e->type != SGX_PAGE_TYPE_REG && e->type != SGX_PAGE_TYPE_TCS)
		return PF;
	if (type != SGX_PAGE_TYPE_TCS && type != SGX_PAGE_TYPE_TRIM)
		return GP;
	cpuid_disarm(e);
	e->type = type;
	e->perm = 0;
	e->pr = 0;
	e->modified = 1;
	changed(e);
	return 0;
}

/* Returns the page of the enclave at an operand, in any state. If it returns NULL, *ret is the reason. */
static struct epcm *page_operand(struct epcm *tcs, u64 addr, int *ret)
{
	struct sgx_secs *s = tcs->secs->va;
	struct epcm *e;

	if ((addr & ~PAGE_MASK) || addr - s->base >= s->size) {
		*ret = GP;
		return NULL;
	}
	e = epcm_user(addr);
	if (!e)
		*ret = fault_in(addr);
	else if (e->secs != tcs->secs)
		*ret = PF;
	else
		return e;
	return NULL;
}

/* Compares the SECINFO of EACCEPT with the state of the page. */
static u64 state(struct epcm *e)
{
	return (u64)e->type << 8 | e->perm | (e->pending ? SECINFO_PENDING : 0) |
	       (e->modified ? SECINFO_MODIFIED : 0) | (e->pr ? SECINFO_PR : 0);
}

static void done(struct pt_regs *r, int code)
{
	r->ax = code;
	r->flags = code ? r->flags | X86_EFLAGS_ZF : r->flags & ~X86_EFLAGS_ZF;
	r->ip += 3;
}

int eaccept(struct pt_regs *r)
{
	struct epcm *tcs = inside(), *e;
	struct sgx_secinfo *si;
	int ret = 0;

	if (!tcs)
		return GP;
	si = operand(tcs, r->bx, 64, &ret);
	e = si ? page_operand(tcs, r->cx, &ret) : NULL;
	if (!e)
		return ret;
	if (state(e) != (si->flags & SECINFO_STATE) || !(e->pending || e->modified || e->pr)) {
		done(r, ERR_PAGE_ATTRIBUTES_MISMATCH);
		return 0;
	}
	if ((e->modified || e->pr) && !tracked(e)) {
		done(r, SGX_NOT_TRACKED);
		return 0;
	}
	e->pending = e->modified = e->pr = 0;
	done(r, 0);
	return 0;
}

/* Extends permissions; there is no error code. */
int emodpe(struct pt_regs *r)
{
	struct epcm *tcs = inside(), *e;
	struct sgx_secinfo *si;
	int ret = 0;

	if (!tcs)
		return GP;
	si = operand(tcs, r->bx, 64, &ret);
	e = si ? page_operand(tcs, r->cx, &ret) : NULL;
	if (!e)
		return ret;
	if (e->type != SGX_PAGE_TYPE_REG || e->pending || e->modified)
		return PF;
	e->perm |= si->flags & SGX_SECINFO_PERMISSION_MASK;
	cpuid_disarm(e);
	cpuid_arm(e);
	r->ip += 3;
	return 0;
}

/* Accepts a page that EAUG added, with the content of another. */
int eacceptcopy(struct pt_regs *r)
{
	struct epcm *tcs = inside(), *to;
	struct sgx_secinfo *si;
	void *from;
	int ret = 0;

	if (!tcs)
		return GP;
	si = operand(tcs, r->bx, 64, &ret);
	from = si ? operand(tcs, r->dx, PAGE_SIZE, &ret) : NULL;
	to = from ? page_operand(tcs, r->cx, &ret) : NULL;
	if (!to)
		return ret;
	if (!to->pending || to->modified || to->type != SGX_PAGE_TYPE_REG) {
		done(r, ERR_PAGE_ATTRIBUTES_MISMATCH);
		return 0;
	}
	memcpy(to->va, from, PAGE_SIZE);
	to->perm |= si->flags & SGX_SECINFO_PERMISSION_MASK;
	to->pending = 0;
	done(r, 0);
	return 0;
}
