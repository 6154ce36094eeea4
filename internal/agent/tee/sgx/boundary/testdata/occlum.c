// SPDX-License-Identifier: Apache-2.0
/* The function names of Occlum's PAL, which are in its symbol table. */

static long __attribute__((noinline)) occlum_ocall_sched_yield(void *ms)
{
	asm volatile("" ::"r"(ms));
	return 0;
}

static long __attribute__((noinline)) occlum_ecall_new_process(long ocalls)
{
	for (long i = 0; i < ocalls; i++)
		occlum_ocall_sched_yield(&ocalls);
	return ocalls;
}

long occlum_pal_create_process(long ocalls)
{
	return occlum_ecall_new_process(ocalls) + 1;
}
