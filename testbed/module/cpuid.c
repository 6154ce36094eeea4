// SPDX-License-Identifier: GPL-2.0-only
#include "swsgx.h"

/*
 * CPUID inside an enclave is #UD; SDM "Illegal Instructions". QEMU's processor has no way to intercept
 * it, so each CPUID (0F A2) in a resident, executable and not writable page of an initialised enclave is
 * replaced by UD2 (0F 0B).
 *
 * The enclave's exception handler reads the instruction to identify it. So the CPUID is restored when a
 * thread leaves at such a place, and replaced again when that thread resumes or enters. A thread that
 * executes the place in between executes a real CPUID.
 *
 * Not trapped are CPUIDs across two pages, CPUIDs beyond CPUID_SITES in one page (counted in
 * cpuid_untrapped), and CPUIDs in pages that the enclave can write.
 */
#include <linux/uaccess.h>
#include <asm/insn.h>

static bool cpuid_ud = true;
module_param(cpuid_ud, bool, 0444);
MODULE_PARM_DESC(cpuid_ud, "CPUID inside an enclave is #UD, as in hardware");

static const u8 cpuid_code[2] = {0x0f, 0xa2}, ud2_code[2] = {0x0f, 0x0b};

/* Decoding begins this many bytes before. An instruction has at most 15 bytes. */
#define LOOK_BACK 64

/* Reports whether an instruction begins at "at" if one begins at "from". */
static bool decodes_to(const u8 *page, int from, int at)
{
	struct insn insn;

	for (; from < at; from += insn.length)
		if (sym.insn_decode(&insn, page + from, PAGE_SIZE - from, INSN_MODE_64))
			return false;
	return from == at;
}

/*
 * Reports whether an instruction begins at an offset, which could also be inside an instruction or in
 * data. Decoding of x86 code synchronises within a few instructions, from any start. So most starts
 * must lead to the offset.
 */
static bool is_instruction(const u8 *page, int at)
{
	int from, votes = 0, all = 0;

	for (from = max(0, at - LOOK_BACK); from < at; from++, all++)
		votes += decodes_to(page, from, at);
	return 2 * votes >= all;
}

/* Replaces the CPUIDs of a page. */
void cpuid_arm(struct epcm *e)
{
	const u8 exec = SGX_SECINFO_X | SGX_SECINFO_W;
	u8 *page = e->va;
	int at;

	if (!cpuid_ud || e->type != SGX_PAGE_TYPE_REG || (e->perm & exec) != SGX_SECINFO_X)
		return;
	for (at = 0; at < PAGE_SIZE - 1; at++) {
		if (memcmp(page + at, cpuid_code, 2) || !is_instruction(page, at))
			continue;
		if (e->nr_cpuid == CPUID_SITES) {
			count.cpuid_untrapped++;
			continue;
		}
		e->cpuid[e->nr_cpuid++] = at;
		memcpy(page + at, ud2_code, 2);
	}
}

/* Restores the CPUIDs of a page before the page is written back. */
void cpuid_disarm(struct epcm *e)
{
	while (e->nr_cpuid)
		memcpy(e->va + e->cpuid[--e->nr_cpuid], cpuid_code, 2);
}

/* Replaces the CPUIDs of all resident pages of an enclave, at EINIT. */
void cpuid_arm_enclave(struct epcm *secs)
{
	unsigned long j;
	int i;

	for (i = 0; i < nr_sections; i++)
		for (j = 0; j < sections[i].size >> PAGE_SHIFT; j++)
			if (sections[i].epcm[j].valid && sections[i].epcm[j].secs == secs)
				cpuid_arm(&sections[i].epcm[j]);
}

/* At a #UD inside: restores the instruction if it was a CPUID. */
void cpuid_show(struct epcm *tcs, u64 ip)
{
	struct epcm *e = epcm_user(ip);
	int i;

	for (i = 0; e && i < e->nr_cpuid; i++) {
		if (e->cpuid[i] != offset_in_page(ip))
			continue;
		memcpy(e->va + e->cpuid[i], cpuid_code, 2);
		tcs->shown = e;
		tcs->shown_ip = ip;
		tcs->shown_frame = ((struct sgx_tcs *)tcs->va)->ssa_index;
		count.cpuid++;
	}
}

/* Replaces the CPUID again that the exception handler has seen, if its page is still resident. The
 * thread has left the handler. */
void cpuid_hide(struct epcm *tcs)
{
	struct epcm *e = tcs->shown;
	int i;

	tcs->shown = NULL;
	if (!e->valid || e->secs != tcs->secs || e->linaddr != (tcs->shown_ip & PAGE_MASK))
		return;
	for (i = 0; i < e->nr_cpuid; i++)
		if (e->cpuid[i] == offset_in_page(tcs->shown_ip))
			memcpy(e->va + e->cpuid[i], ud2_code, 2);
}
