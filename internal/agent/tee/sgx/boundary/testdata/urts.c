// SPDX-License-Identifier: Apache-2.0
/* The functions of Intel's untrusted runtime that an application calls, without an enclave: an ECALL makes as
 * many OCALLs as its argument says. */
#include "urts.h"

long urts_in_ecalls, urts_around_ocalls;
int urts_timed;

int sgx_ecall(unsigned long eid, int index, const struct table *table, struct call *ms)
{
	long entered = nanoseconds();

	(void)eid;
	(void)index;
	for (long i = 0; i < ms->ocalls; i++) {
		long left = nanoseconds();

		table->ocall[i % table->count](ms);
		took(&urts_around_ocalls, left);
	}
	took(&urts_in_ecalls, entered);
	return 0;
}

int sgx_ecall_switchless(unsigned long eid, int index, const struct table *table, struct call *ms)
{
	(void)eid;
	(void)index;
	(void)table;
	(void)ms;
	return 0;
}
