// SPDX-License-Identifier: Apache-2.0
/* An application of the SDK, with the bridges and the table that its tool generates. Each line of input is
 * COMMAND NUMBER OCALLS THREADS: `ecall` makes that many ECALLs in each thread, `paced` with pauses, `number` of one
 * function each, `switchless` switchless ones; `fork` in a child, `exec` in a new image of this program. Each answer
 * says what the application counted itself. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "urts.h"

static long counted[3];

static void __attribute__((noinline)) happened(int number)
{
	__atomic_fetch_add(&counted[number], 1, __ATOMIC_RELAXED);
}

#define BRIDGE(number, name)                                                                       \
	static int __attribute__((noinline)) name(void *ms)                                        \
	{                                                                                          \
		happened(number);                                                                  \
		return ms != NULL;                                                                 \
	}
BRIDGE(0, app_ocall_print)
BRIDGE(1, app_ocall_read)
BRIDGE(2, app_ocall_wait)

#ifdef TABLE_ON_HEAP /* no file has what it says */
static struct {
	size_t count;
	void *ocall[3];
} ocall_table_app;

static void __attribute__((constructor)) fill(void)
{
	ocall_table_app.count = 3;
	ocall_table_app.ocall[0] = app_ocall_print;
	ocall_table_app.ocall[1] = app_ocall_read;
	ocall_table_app.ocall[2] = app_ocall_wait;
}
#else
static const struct {
	size_t count;
	void *ocall[3];
} ocall_table_app = {3, {(void *)app_ocall_print, (void *)app_ocall_read, (void *)app_ocall_wait}};
#endif

static int (*call)(unsigned long, int, const struct table *, struct call *);
static long number, ocalls;
static int paced, numbered;

static void *work(void *unused)
{
	struct call ms = {ocalls};

	for (long i = 0; numbered && i < (number < 0 ? -number : number); i++)
		call(1, number < 0 ? -1 - i : i, (const void *)&ocall_table_app, &ms);
	if (numbered)
		return unused;
	for (long i = 0; i < number; i++) {
		call(1, i % 2, (const void *)&ocall_table_app, &ms);
		if (paced && i % 10 == 0)
			usleep(200);
	}
	return unused;
}

static void run(int threads)
{
	pthread_t t[64];

	memset(counted, 0, sizeof(counted));
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	printf("%ld %ld %ld %ld\n", number * threads, counted[0], counted[1], counted[2]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char command[16], line[256], *self = argv[0];
	int threads;

	if (argc > 1) { /* executed anew */
		sscanf(argv[1], "%ld %ld %d", &number, &ocalls, &threads);
		call = sgx_ecall;
		run(threads);
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%15s %ld %ld %d", command, &number, &ocalls, &threads) != 4)
			return 1;
		call = strcmp(command, "switchless") ? sgx_ecall : sgx_ecall_switchless;
		numbered = !strcmp(command, "number");
		paced = !strcmp(command, "paced");
		if (!strcmp(command, "exec")) {
			execl(self, self, line + 5, NULL);
		} else if (!strcmp(command, "fork")) {
			if (!fork()) {
				run(threads);
				_exit(0);
			}
			wait(NULL);
		} else {
			run(threads);
		}
	}
	return 0;
}
