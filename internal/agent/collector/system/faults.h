/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Why a page fault happened, from the error code that the processor gives (Intel SDM vol. 3A, 4.7). */
#ifndef TEESCOPE_FAULTS_H
#define TEESCOPE_FAULTS_H

#include "kernel.h"
#include "system.h"

static __always_inline u32 reason_of(unsigned long code)
{
	if (code & X86_PF_RMP)
		return RMP;
	if (code & X86_PF_SGX)
		return SGX;
	if (code & X86_PF_PK)
		return PROTECTION_KEY;
	if (code & X86_PF_RSVD)
		return FAULT_OTHER;
	if (code & X86_PF_INSTR)
		return INSTR_FETCH_FAULT;
	if (code & X86_PF_PROT)
		return code & X86_PF_WRITE ? WRITE_PROT_FAULT : READ_PROT_FAULT;
	return code & X86_PF_WRITE ? WRITE_FAULT : NO_PAGE_FOUND;
}

#endif
