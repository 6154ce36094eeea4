/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * How an asynchronous exit of an enclave (AEX) is recognised. The processor has replaced the registers of the thread before
 * it entered the kernel (Intel SDM volume 3D, "Asynchronous Enclave Exit"): RAX is ERESUME, RCX and RIP are the address of
 * the AEP, RBX is that of the TCS, and R11 is 0. A thread that returns from a system call has RCX = RIP too, but R11 is then
 * its flags, which are never 0.
 */
#ifndef TEESCOPE_AEX_H
#define TEESCOPE_AEX_H

#include "kernel.h"

enum { ERESUME = 3 }; /* in RAX at ENCLU */

/* Why threads leave enclaves asynchronously (AEX). */
enum cause {
	CAUSE_OTHER, /* other interrupts, and exceptions that no tracepoint shows */
	CAUSE_PAGE_FAULT,
	CAUSE_TIMER,
	CAUSE_RESCHEDULE, /* another CPU wakes up a thread here */
	CAUSE_DEVICE,
	CAUSES,
	CAUSE_PLACES = 8, /* a power of two, so that every verifier sees that an index is inside */
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct pt_regs___aex {
	unsigned long ax, bx, cx, ip, r11;
};
#pragma clang attribute pop

/* The registers are those of the thread, of any structure that has them. */
#define IS_AEX(regs) ((regs)->ax == ERESUME && (regs)->cx == (regs)->ip && !(regs)->r11)

#endif
