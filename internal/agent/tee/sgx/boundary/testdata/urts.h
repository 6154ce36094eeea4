/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#include <stddef.h>
#include <time.h>

struct call {
	long ocalls;
};

struct table {
	size_t count;
	int (*ocall[])(void *);
};

int sgx_ecall(unsigned long eid, int index, const struct table *table, struct call *ms);
int sgx_ecall_switchless(unsigned long eid, int index, const struct table *table, struct call *ms);

/* Nanoseconds that the library has spent in ECALLs, and around the OCALLs that it called, while clock reading
 * was enabled. */
extern long urts_in_ecalls, urts_around_ocalls;
extern int urts_timed;

static inline long nanoseconds(void)
{
	struct timespec t;

	if (!urts_timed)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void took(long *sum, long since)
{
	if (urts_timed)
		__atomic_fetch_add(sum, nanoseconds() - since, __ATOMIC_RELAXED);
}
