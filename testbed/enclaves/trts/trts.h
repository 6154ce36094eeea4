/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The trusted runtime: the functions that an enclave of the testbed can call, and the one that it must define. */
#ifndef TRTS_H
#define TRTS_H

#include <stddef.h>
#include <stdint.h>
#include "layout.h"

/* Each enclave defines this function. It executes the ECALL with an index and returns a status (0 is success). */
long enclave_ecall(long index, void *ms);

/* Leaves the enclave for the untrusted function with an index; returns its status. */
long ocall(long index, void *ms);

/* The interrupted thread's registers, SDM "GPRSGX Region". */
struct gpr {
	uint64_t ax, cx, dx, bx, sp, bp, si, di, r8, r9, r10, r11, r12, r13, r14, r15;
	uint64_t flags, ip, ursp, urbp;
	uint32_t exitinfo, reserved;
	uint64_t fsbase, gsbase;
};

/* Numbers of exceptions by instruction. */
struct exceptions {
	uint64_t cpuid, rdtsc, ud2, other;
};
extern struct exceptions exceptions;

/* The heap, and the size of the pages after it. Those are added when they are first accepted (SGX2). */
void *heap(void);
size_t heap_size(void);
size_t dynamic_size(void);

/* Accepts a page that EAUG adds at its first access (SGX2). Returns 0 or the error of EACCEPT. */
long accept_page(void *page);

void *memcpy(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);

#endif
