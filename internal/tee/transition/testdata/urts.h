/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include <stddef.h>

struct call {
	long ocalls;
};

struct table {
	size_t count;
	int (*ocall[])(void *);
};

int sgx_ecall(unsigned long eid, int index, const struct table *table, struct call *ms);
int sgx_ecall_switchless(unsigned long eid, int index, const struct table *table, struct call *ms);
