// SPDX-License-Identifier: GPL-2.0-only
#include "swsgx.h"

/*
 * CPUID inside an enclave is #UD; SDM "Illegal Instructions". QEMU's processor has no way to intercept
 * it, so each CPUID (0F A2) in a resident, executable and not writable page of an initialised enclave is
 * replaced by UD2 (0F 0B).
 *
 * The enclave's exception handler looks at the bytes to know what it was. So when a thread leaves at such
 * a place the CPUID comes back, and is replaced again when that thread resumes or enters anew. Another
 * thread that executes it in between does execute CPUID.
 *
 * Not trapped: CPUIDs that lie across two pages, that are more than CPUID_SITES in one page (counted in
 * cpuid_untrapped), and those in pages that the enclave can write.
 */
#include <linux/uaccess.h>
#include <asm/insn.h>

static bool cpuid_ud = true;
module_param(cpuid_ud, bool, 0444);
MODULE_PARM_DESC(cpuid_ud, "CPUID inside an enclave is #UD, as in hardware");

static const u8 cpuid_code[2] = {0x0f, 0xa2}, ud2_code[2] = {0x0f, 0x0b};

/* How far back to begin decoding: instructions have 15 bytes at most. */
#define LOOK_BACK 64

/* Whether decoding from a place meets another one between two instructions. */
static bool decodes_to(const u8 *page, int from, int at)
{
	struct insn insn;

	for (; from < at; from += insn.length)
		if (sym.insn_decode(&insn, page + from, PAGE_SIZE - from, INSN_MODE_64))
			return false;
	return from == at;
}

/*
 * Whether an instruction begins there, and it is not the middle of another or data: decoding x86 code
 * from wherever falls into step within a few instructions, so most beginnings must agree.
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

/* Gives a page its CPUIDs back: it is about to be written back. */
void cpuid_disarm(struct epcm *e)
{
	while (e->nr_cpuid)
		memcpy(e->va + e->cpuid[--e->nr_cpuid], cpuid_code, 2);
}

/* At EINIT: all pages of the enclave that are resident. */
void cpuid_arm_enclave(struct epcm *secs)
{
	unsigned long j;
	int i;

	for (i = 0; i < nr_sections; i++)
		for (j = 0; j < sections[i].size >> PAGE_SHIFT; j++)
			if (sections[i].epcm[j].valid && sections[i].epcm[j].secs == secs)
				cpuid_arm(&sections[i].epcm[j]);
}

/* At a #UD inside: when it was a CPUID, shows it again. */
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

/* The thread runs on, and is not in its exception handler any more: what it was shown is replaced again, if the page is still there. */
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
