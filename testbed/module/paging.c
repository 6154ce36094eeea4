// SPDX-License-Identifier: GPL-2.0-only
/*
 * ENCLS: paging. SDM "EPC and Management of EPC Pages". ETRACK's epochs are counters. A page that was
 * blocked in one epoch can be written back when all threads have entered in a later one.
 *
 * Pages are not encrypted. The version in the VA slot and the "MAC" bind a page to its place.
 */
#include "swsgx.h"

int epa(u64 addr, u64 type)
{
	struct epcm *e = epcm_va(addr);

	if (!e || e->valid)
		return PF;
	if (type != SGX_PAGE_TYPE_VA)
		return GP;
	memset(e->va, 0, PAGE_SIZE);
	epcm_set(e, NULL, SGX_PAGE_TYPE_VA, 0, 0);
	return 0;
}

int eblock(u64 addr)
{
	struct epcm *e = epcm_va(addr);

	if (!e || !e->valid)
		return PF;
	if (!e->secs)
		return ERR_PG_IS_SECS;
	if (e->blocked)
		return ERR_BLKSTATE;
	e->blocked = 1;
	e->block_epoch = e->secs->epoch;
	return 0;
}

int etrack(u64 addr)
{
	struct epcm *e = epcm_va(addr);

	if (!is_type(e, SGX_PAGE_TYPE_SECS))
		return PF;
	e->epoch++;
	return 0;
}

static bool has_secs(u8 type)
{
	return type != SGX_PAGE_TYPE_SECS && type != SGX_PAGE_TYPE_VA;
}

int eld(struct sgx_pageinfo *pi, u64 addr, u64 *slot, bool block)
{
	struct epcm *e = epcm_va(addr), *va = epcm_va((u64)slot), *secs = NULL;
	struct sgx_pcmd *pcmd = (void *)pi->metadata;
	u8 type = (pcmd->secinfo.flags & SGX_SECINFO_PAGE_TYPE_MASK) >> 8;

	if (!e || e->valid || !is_type(va, SGX_PAGE_TYPE_VA))
		return PF;
	if (has_secs(type)) {
		secs = epcm_va(pi->secs);
		if (!is_type(secs, SGX_PAGE_TYPE_SECS))
			return PF;
		if (pcmd->enclave_id != secs->eid)
			return ERR_MAC_COMPARE_FAIL;
	}
	if (!*slot || memcmp(pcmd->mac, slot, 8) || (secs && memcmp(pcmd->mac + 8, &pi->addr, 8)))
		return ERR_MAC_COMPARE_FAIL;
	memcpy(e->va, (void *)pi->contents, PAGE_SIZE);
	epcm_set(e, secs, type, pcmd->secinfo.flags & SGX_SECINFO_PERMISSION_MASK,
		 secs ? pi->addr : 0);
	if (type == SGX_PAGE_TYPE_SECS) {
		e->epoch = 1;
		e->eid = *secs_eid(e->va);
	}
	e->blocked = block;
	e->block_epoch = block && secs ? secs->epoch : 0;
	*slot = 0;
	if (secs && (((struct sgx_secs *)secs->va)->attributes & SGX_ATTR_INIT))
		cpuid_arm(e);
	return 0;
}

/* Returns false if a thread may still use an address translation from before the page was blocked or changed. */
bool tracked(struct epcm *e)
{
	struct epcm *tcs;

	if (e->secs->epoch <= e->block_epoch) {
		count.not_tracked++;
		return false;
	}
	list_for_each_entry(tcs, &busy,
			    busy) if (tcs->secs == e->secs && tcs->enter_epoch < e->secs->epoch)
	{
		count.kick++; /* the driver must kick that thread */
		return false;
	}
	return true;
}

int ewb(struct sgx_pageinfo *pi, u64 addr, u64 *slot)
{
	static u64 next_version;
	struct epcm *e = epcm_va(addr), *va = epcm_va((u64)slot);
	struct sgx_pcmd *pcmd = (void *)pi->metadata;

	if (!e || !e->valid || !is_type(va, SGX_PAGE_TYPE_VA))
		return PF;
	if (*slot)
		return ERR_VA_SLOT_OCCUPIED;
	if (e->type == SGX_PAGE_TYPE_SECS && e->children)
		return SGX_CHILD_PRESENT;
	if (has_secs(e->type)) {
		if (!e->blocked)
			return ERR_PAGE_NOT_BLOCKED;
		if (!tracked(e))
			return SGX_NOT_TRACKED;
	}
	cpuid_disarm(e);
	memcpy((void *)pi->contents, e->va, PAGE_SIZE);
	memset(pcmd, 0, sizeof(*pcmd));
	pcmd->secinfo.flags = (u64)e->type << 8 | e->perm;
	pcmd->enclave_id = e->secs ? e->secs->eid : 0;
	*slot = ++next_version;
	memcpy(pcmd->mac, slot, 8);
	memcpy(pcmd->mac + 8, &e->linaddr, 8);
	pi->addr = e->linaddr;
	memset(e->va, 0xff, PAGE_SIZE); /* makes the use of a stale mapping visible */
	epcm_clear(e);
	return 0;
}
