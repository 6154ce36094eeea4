// SPDX-License-Identifier: GPL-2.0-only
/*
 * Instructions inside an enclave for which QEMU's processor raises another exception than the hardware.
 *
 * It has no XSAVEC, so it faults on the compacted form of XRSTOR, with which Gramine resets the state.
 * That form is emulated here, only for an image of initial state (XSTATE_BV is 0).
 *
 * RDTSC and RDTSCP raise #GP because of CR4.TSD. In an enclave they raise #UD.
 */
#include "swsgx.h"

#include <linux/uaccess.h>

/* The registers in the order of their numbers in instructions. */
static const u8 reg_offset[16] = {
	offsetof(struct pt_regs, ax),  offsetof(struct pt_regs, cx),  offsetof(struct pt_regs, dx),
	offsetof(struct pt_regs, bx),  offsetof(struct pt_regs, sp),  offsetof(struct pt_regs, bp),
	offsetof(struct pt_regs, si),  offsetof(struct pt_regs, di),  offsetof(struct pt_regs, r8),
	offsetof(struct pt_regs, r9),  offsetof(struct pt_regs, r10), offsetof(struct pt_regs, r11),
	offsetof(struct pt_regs, r12), offsetof(struct pt_regs, r13), offsetof(struct pt_regs, r14),
	offsetof(struct pt_regs, r15),
};

/*
 * Decodes XRSTOR (0F AE /5) with a memory operand that has no index register. Returns its length and
 * the operand's address, or 0.
 */
static int decode_xrstor(struct pt_regs *r, const u8 *op, u64 *addr)
{
	const u8 *p = op;
	u8 rex = 0, mod, rm;
	s32 disp = 0;

	if ((*p & 0xf0) == 0x40)
		rex = *p++;
	if (p[0] != 0x0f || p[1] != 0xae || (p[2] >> 3 & 7) != 5)
		return 0;
	mod = p[2] >> 6;
	rm = p[2] & 7;
	if (mod == 3 || rm == 4)
		return 0;
	p += 3;
	if (mod == 1) {
		disp = *(s8 *)p++;
	} else if (mod == 2 || rm == 5) {
		memcpy(&disp, p, 4);
		p += 4;
	}
	if (mod == 0 && rm == 5)
		*addr = r->ip + (p - op) + disp;
	else
		*addr = *(u64 *)((u8 *)r + reg_offset[rm | (rex & 1) << 3]) + disp;
	return p - op;
}

static u64 xfrm_inside(void)
{
	unsigned long flags;
	struct epcm *tcs;
	u64 xfrm;

	raw_spin_lock_irqsave(&lock, flags);
	tcs = inside();
	xfrm = tcs ? tcs->xfrm : 0;
	raw_spin_unlock_irqrestore(&lock, flags);
	return xfrm;
}

/* Reports whether a #GP needs no signal: XRSTOR was emulated here, or must be tried again. */
static bool xrstor_compact(struct pt_regs *r)
{
	u64 xfrm = xfrm_inside(), addr, header[2];
	u8 op[16] = {};
	int length;

	if (!xfrm)
		return false;
	if (copy_from_user_nofault(op, (void __user *)r->ip, 9))
		return true; /* the page was just reclaimed: run the instruction again */
	length = decode_xrstor(r, op, &addr);
	if (!length)
		return false;
	if (copy_from_user_nofault(header, (void __user *)(addr + 512), sizeof(header)))
		return true;
	if (!(header[1] >> 63) || header[0])
		return false;
	xsave_reset(((u32)r->ax | r->dx << 32) & xfrm);
	r->ip += length;
	bump(&count.xrstor_compact);
	return true;
}

/* Reports whether the thread is inside, at an RDTSC or RDTSCP that is not allowed. */
bool is_rdtsc(struct pt_regs *r)
{
	u8 op[3] = {};

	if (!xfrm_inside() || copy_from_user_nofault(op, (void __user *)r->ip, 2))
		return false;
	if (op[0] == 0x0f && op[1] == 0x31)
		return true;
	return op[0] == 0x0f && op[1] == 0x01 &&
	       !copy_from_user_nofault(op, (void __user *)r->ip, 3) && op[2] == 0xf9;
}

/*
 * Reports whether a #GP at this instruction needs no signal: the instruction was emulated, or the thread
 * will execute it again.
 */
bool again(struct pt_regs *r)
{
	return xrstor_compact(r) || is_rdtsc(r);
}
