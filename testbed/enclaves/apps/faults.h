/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef FAULTS_H
#define FAULTS_H

#include <stdint.h>

enum { ECALL_FAULTS, ECALL_SPIN };

struct faults {
	/* in: number of executions; out: number of exceptions that the handler received */
	uint64_t cpuid, rdtsc, ud2;
	uint64_t other;
	volatile uint64_t stop; /* ECALL_SPIN ends when it is not 0 */
	uint64_t spins;
};

#endif
