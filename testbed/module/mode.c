// SPDX-License-Identifier: GPL-2.0-only
/*
 * The processor's mode inside an enclave; SDM "Illegal Instructions" and "Extended Feature Enable Mask".
 * SYSCALL raises #UD because EFER.SCE is off. RDTSC raises #GP because CR4.TSD is on; insn.c turns it into
 * a #UD. XCR0 is XFRM. The kernel's own copy of CR4 stays as it is: before another thread runs, the hook
 * of the scheduler restores CR4.
 */
#include "swsgx.h"

#include <asm/msr.h>
#include <asm/processor-flags.h>

static bool syscall_ud = true;
module_param(syscall_ud, bool, 0644);
MODULE_PARM_DESC(syscall_ud, "SYSCALL inside an enclave is #UD, as in hardware");

static bool rdtsc_ud = true;
module_param(rdtsc_ud, bool, 0644);
MODULE_PARM_DESC(rdtsc_ud, "RDTSC inside an enclave is #UD, as in processors before Ice Lake");

static DEFINE_PER_CPU(u64, mode); /* 0 outside, else XFRM */

static void set_xcr0(u64 v)
{
	asm volatile("xsetbv" ::"c"(0), "a"((u32)v), "d"((u32)(v >> 32)));
}

static u64 get_cr4(void)
{
	u64 v;

	asm volatile("mov %%cr4, %0" : "=r"(v));
	return v;
}

static void set_cr4(u64 v)
{
	asm volatile("mov %0, %%cr4" ::"r"(v) : "memory");
}

void mode_enter(u64 xfrm)
{
	u64 efer;

	this_cpu_write(mode, xfrm);
	if (syscall_ud) {
		rdmsrl(MSR_EFER, efer);
		wrmsrl(MSR_EFER, efer & ~(u64)EFER_SCE);
	}
	if (rdtsc_ud)
		set_cr4(get_cr4() | X86_CR4_TSD);
	if (xcr0 && xfrm != xcr0)
		set_xcr0(xfrm);
}

void mode_leave(void)
{
	u64 efer, cr4, xfrm = this_cpu_read(mode);

	if (!xfrm)
		return;
	this_cpu_write(mode, 0);
	rdmsrl(MSR_EFER, efer);
	if (!(efer & EFER_SCE))
		wrmsrl(MSR_EFER, efer | EFER_SCE);
	cr4 = get_cr4();
	if (cr4 & X86_CR4_TSD)
		set_cr4(cr4 & ~(u64)X86_CR4_TSD);
	if (xcr0 && xfrm != xcr0)
		set_xcr0(xcr0);
}
