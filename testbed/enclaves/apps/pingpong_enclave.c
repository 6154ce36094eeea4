// SPDX-License-Identifier: Apache-2.0
// Answers each ECALL with a number of OCALLs.
#include "../trts/trts.h"
#include "pingpong.h"

long enclave_ecall(long index, void *ms)
{
	struct ping *ping = ms;
	unsigned long pongs = ping->pongs;

	if (index != ECALL_PING)
		return 1;
	for (unsigned long i = 0; i < pongs; i++) {
		long status = ocall(OCALL_PONG, ping);

		if (status)
			return status;
	}
	return 0;
}
