// SPDX-License-Identifier: GPL-2.0-only
/*
 * The extended state of a thread inside; SDM "XSAVE Area in SSA". An AEX saves it in the SSA frame and
 * leaves initial values. ERESUME loads it. Only the standard format is supported, and only components
 * that fit in the first page of the frame. QEMU's emulation has no others.
 */
#include "swsgx.h"

#include <linux/slab.h>
#include <asm/cpuid.h>
#include <asm/fpu/api.h>

#define XSTATE_BV 512 /* the header's place, SDM volume 1, "XSAVE Header" */
#define LEGACY	  416 /* x87 and SSE registers */
#define MXCSR	  24
#define PKRU	  9 /* the kernel keeps it separately */

u64 xcr0;
static u64 saved;     /* the components that are saved and loaded */
static u32 end[64];   /* where each ends */
static void *initial; /* an image of initial state */

void __init xsave_probe(void)
{
	u32 a, b, c, d;
	int i;

	if (!boot_cpu_has(X86_FEATURE_OSXSAVE))
		return;
	asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
	xcr0 = a | (u64)d << 32;
	initial = (void *)get_zeroed_page(GFP_KERNEL);
	if (!initial)
		return;
	*(u16 *)initial = 0x37f;
	*(u32 *)(initial + MXCSR) = 0x1f80;
	end[0] = end[1] = 576;
	for (i = 0; i < 63; i++) {
		if (!(xcr0 & BIT_ULL(i)) || i == PKRU)
			continue;
		if (i > 1) {
			cpuid_count(0xd, i, &a, &b, &c, &d);
			end[i] = a + b;
		}
		if (end[i] <= PAGE_SIZE)
			saved |= BIT_ULL(i);
	}
}

u32 xsave_size(u64 xfrm)
{
	u32 n = 576;
	int i;

	for (i = 2; i < 63; i++)
		if ((xfrm & BIT_ULL(i)) && end[i] > n)
			n = end[i];
	return n;
}

static void xrstor(void *from, u64 mask)
{
	asm volatile("xrstor64 %0" ::"m"(*(u8(*)[PAGE_SIZE])from), "a"((u32)mask),
		     "d"((u32)(mask >> 32))
		     : "memory");
}

/* Returns the registers that the kernel has saved for the current thread. NULL means that they are live. */
static u8 *saved_regs(void)
{
	if (!test_thread_flag(TIF_NEED_FPU_LOAD))
		return NULL;
	current->thread.fpu.last_cpu = -1;
	return (u8 *)&current->thread.fpu.fpstate->regs.xsave;
}

static void reset_saved(u8 *x, u64 mask)
{
	memcpy(x, initial, LEGACY);
	*(u64 *)(x + XSTATE_BV) &= ~mask;
}

/* Saves the current thread's state and leaves initial values. */
void xsave_put(void *to, u64 xfrm)
{
	u64 mask = xfrm & saved;
	u8 *x = saved_regs();

	if (!mask)
		return;
	memset(to + XSTATE_BV, 0, 64);
	if (!x) {
		asm volatile("xsave64 %0"
			     : "+m"(*(u8(*)[PAGE_SIZE])to)
			     : "a"((u32)mask), "d"((u32)(mask >> 32))
			     : "memory");
		xrstor(initial, mask);
		return;
	}
	if (*(u64 *)(x + XSTATE_BV + 8)) /* compacted: QEMU's processor does not use this format */
		return;
	memcpy(to, x, xsave_size(mask));
	*(u64 *)(to + XSTATE_BV) &= mask;
	reset_saved(x, mask);
}

/* Loads state into the registers. Returns false if XRSTOR would fault. */
bool xsave_get(void *from, u64 xfrm)
{
	u64 mask = xfrm & saved;

	if (!mask)
		return true;
	if ((*(u64 *)(from + XSTATE_BV) & ~mask) || (*(u32 *)(from + MXCSR) & ~0xffffu) ||
	    memchr_inv(from + XSTATE_BV + 8, 0, 56))
		return false;
	if (WARN_ON_ONCE(test_thread_flag(TIF_NEED_FPU_LOAD))) /* the thread was in user mode */
		return false;
	xrstor(from, mask);
	count.xrstor++;
	return true;
}

/* Sets the current thread to initial state, whether its registers are live or saved. */
void xsave_reset(u64 xfrm)
{
	u64 mask = xfrm & saved;
	unsigned long flags;
	u8 *x;

	local_irq_save(flags);
	x = saved_regs();
	if (x)
		reset_saved(x, mask);
	else
		xrstor(initial, mask);
	local_irq_restore(flags);
}
