/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef SELFTEST_H
#define SELFTEST_H

#include <stdint.h>

enum {
	ECALL_COUNT,  /* adds 1 to a counter of the enclave */
	ECALL_FILL,   /* writes the heap */
	ECALL_VERIFY, /* counts pages that lost their content */
	ECALL_HEAP,   /* the address of the heap */
	ECALL_BASES,  /* FS and GS base */
	ECALL_READ,   /* reads an address */
	ECALL_WAIT,   /* waits until *address is not 0 */
	ECALL_SSE,    /* whether SSE registers survive a wait */
	ECALL_TRAPS,  /* CPUID, RDTSC, RDTSCP and SYSCALL */
	ECALL_KEYS,   /* EREPORT for itself, and its report key */
	ECALL_MODIFY, /* accepts restricted and trimmed pages */
};

struct selftest {
	uint64_t address, seed; /* in */
	uint64_t value, value2; /* out */
	uint8_t report[432], key[16];
};

#endif
