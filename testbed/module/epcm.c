// SPDX-License-Identifier: GPL-2.0-only
/* The EPCM: the state of each EPC page that the hardware keeps. SDM "Enclave Page Cache Map". */
#include "swsgx.h"

struct section sections[MAX_SECTIONS];
int nr_sections;
DEFINE_RAW_SPINLOCK(lock);
LIST_HEAD(busy);

/* Returns the entry of a page by its kernel address, which is the operand of ENCLS. */
struct epcm *epcm_va(u64 va)
{
	int i;

	for (i = 0; i < nr_sections; i++)
		if (va - sections[i].virt < sections[i].size)
			return &sections[i].epcm[(va - sections[i].virt) >> PAGE_SHIFT];
	return NULL;
}

struct epcm *epcm_pa(u64 pa)
{
	int i;

	for (i = 0; i < nr_sections; i++)
		if (pa - sections[i].phys < sections[i].size)
			return &sections[i].epcm[(pa - sections[i].phys) >> PAGE_SHIFT];
	return NULL;
}

/*
 * Returns the entry for an address of the current process, or NULL if no EPC page is mapped there. As the
 * hardware does at each access, it checks that the page is mapped where it was added. Interrupts are off.
 */
struct epcm *epcm_user(unsigned long addr)
{
	unsigned int level;
	pte_t *pte = sym.lookup_pgd(pgd_offset(current->mm, addr), addr, &level);
	struct epcm *e;

	if (!pte || level != PG_LEVEL_4K || !pte_present(*pte))
		return NULL;
	e = epcm_pa((u64)pte_pfn(*pte) << PAGE_SHIFT);
	return e && e->valid && e->linaddr == (addr & PAGE_MASK) ? e : NULL;
}

/* Marks a TCS as free of threads. */
void tcs_leave(struct epcm *tcs)
{
	if (tcs->task) {
		list_del_init(&tcs->busy);
		tcs->task = NULL;
	}
}

void epcm_set(struct epcm *e, struct epcm *secs, u8 type, u8 perm, u64 linaddr)
{
	void *va = e->va;

	memset(e, 0, sizeof(*e));
	INIT_LIST_HEAD(&e->busy);
	e->va = va;
	e->secs = secs;
	e->type = type;
	e->perm = perm;
	e->linaddr = linaddr;
	e->valid = 1;
	if (secs)
		secs->children++;
}

/* The common part of EADD and EAUG: records a page with its type. */
int add_page(struct epcm *e, struct epcm *secs, u64 flags, u64 linaddr)
{
	u8 type = (flags & SGX_SECINFO_PAGE_TYPE_MASK) >> 8;

	if (type == SGX_PAGE_TYPE_TCS) {
		struct sgx_tcs *tcs = e->va;

		tcs->state = tcs->flags = tcs->exit_addr = 0;
		tcs->ssa_index = 0;
		flags &= ~SGX_SECINFO_PERMISSION_MASK;
	}
	epcm_set(e, secs, type, flags & SGX_SECINFO_PERMISSION_MASK, linaddr);
	return 0;
}

void epcm_clear(struct epcm *e)
{
	tcs_leave(e);
	if (e->secs)
		e->secs->children--;
	e->secs = NULL;
	e->valid = 0;
}
