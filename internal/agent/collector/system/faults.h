/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The reason of a page fault, from the processor's error code (Intel SDM vol. 3A, 4.7). */
#ifndef TEESCOPE_FAULTS_H
#define TEESCOPE_FAULTS_H

#include "kernel.h"
#include "system.h"

static __always_inline u32 reason_of(unsigned long code)
{
	if (code & X86_PF_RMP)
		return FAULT_RMP;
	if (code & X86_PF_SGX)
		return FAULT_SGX;
	if (code & X86_PF_PK)
		return FAULT_PROTECTION_KEY;
	if (code & X86_PF_RSVD)
		return FAULT_OTHER;
	if (code & X86_PF_INSTR)
		return FAULT_INSTR_FETCH;
	if (code & X86_PF_PROT)
		return code & X86_PF_WRITE ? FAULT_WRITE_PROT : FAULT_READ_PROT;
	return code & X86_PF_WRITE ? FAULT_WRITE : FAULT_NO_PAGE;
}

#endif
