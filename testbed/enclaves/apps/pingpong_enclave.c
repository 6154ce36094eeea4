// SPDX-License-Identifier: Apache-2.0
// Answers each ECALL with a number of OCALLs.
#include "../trts/trts.h"
#include "pingpong.h"

// As Gramine's Exitless: asks a thread outside, and waits for it inside.
static long ask(struct ping *ping)
{
	__atomic_store_n(&ping->wanted, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&ping->wanted, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
	return 0;
}

long enclave_ecall(long index, void *ms)
{
	struct ping *ping = ms;
	unsigned long pongs = ping->pongs;

	if (index != ECALL_PING)
		return 1;
	for (unsigned long i = 0; i < pongs; i++) {
		long status = ping->exitless ? ask(ping) : ocall(OCALL_PONG, ping);

		if (status)
			return status;
	}
	return 0;
}
