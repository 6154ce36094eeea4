// SPDX-License-Identifier: Apache-2.0
// Adds the numbers of two processes.
#include "../trts/trts.h"
#include "twoproc.h"

static unsigned long total;

long enclave_ecall(long index, void *ms)
{
	struct sum *sum = ms;

	if (index != ECALL_ADD)
		return 1;
	sum->total = __atomic_add_fetch(&total, sum->n, __ATOMIC_RELAXED);
	return ocall(OCALL_NOTE, sum);
}
