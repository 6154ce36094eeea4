// SPDX-License-Identifier: Apache-2.0
// Executes instructions that are not allowed in an enclave, and spins.
#include "../trts/trts.h"
#include "faults.h"

static long fault(struct faults *f)
{
	struct exceptions before = exceptions;
	struct faults want = *f;
	uint32_t a, b, c, d;

	for (uint64_t i = 0; i < want.cpuid; i++)
		asm volatile("cpuid"
			     : "=a"(a), "=b"(b), "=c"(c), "=d"(d)
			     : "a"(0), "c"(0)
			     : "memory");
	for (uint64_t i = 0; i < want.rdtsc; i++)
		asm volatile("rdtsc" : "=a"(a), "=d"(d)::"memory");
	for (uint64_t i = 0; i < want.ud2; i++)
		asm volatile("ud2" ::: "memory");
	f->cpuid = exceptions.cpuid - before.cpuid;
	f->rdtsc = exceptions.rdtsc - before.rdtsc;
	f->ud2 = exceptions.ud2 - before.ud2;
	f->other = exceptions.other - before.other;
	return 0;
}

long enclave_ecall(long index, void *ms)
{
	struct faults *f = ms;

	switch (index) {
	case ECALL_FAULTS:
		return fault(f);
	case ECALL_SPIN:
		while (!f->stop) {
			f->spins++;
			__builtin_ia32_pause();
		}
		return 0;
	}
	return 1;
}
