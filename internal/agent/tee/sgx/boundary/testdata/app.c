// SPDX-License-Identifier: Apache-2.0
/* An application of the SDK, with the bridges and the table that its tool generates. Each line of input is
 * COMMAND NUMBER OCALLS THREADS. `ecall` makes NUMBER ECALLs in each thread, `paced` does so with pauses,
 * `number` calls a different function each time, `nested` makes an ECALL with two OCALLs in each OCALL of the third
 * function, and only even ECALLs otherwise, `deep` does so in each of the ECALLs too, five times, `switchless` makes switchless ECALLs, `worker` makes NUMBER OCALLs
 * as a worker of switchless calls does, and `slow` makes OCALLs of 3 ms. `confined` does as `slow`, after it has filtered its system calls.
 * `leave` ends the first thread and serves in another one. `fork` runs in a child, `exec` in a new image of this program. Each answer has the application's
 * own counts. That of `slow` also has the nanoseconds in and around all ECALLs, and in and around all OCALLs. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "urts.h"

static long counted[3];
static long in_ocalls, around_ecalls;

static int nested; /* how deep */
static __thread int depth;
static void nest(void);

static void __attribute__((noinline)) happened(int number)
{
	__atomic_fetch_add(&counted[number], 1, __ATOMIC_RELAXED);
}

#define BRIDGE(number, name)                                                                       \
	static int __attribute__((noinline)) name(void *ms)                                        \
	{                                                                                          \
		long began = nanoseconds();                                                        \
                                                                                                   \
		happened(number);                                                                  \
		if (urts_timed)                                                                    \
			usleep(3000);                                                              \
		if (nested && (number) == 2)                                                       \
			nest();                                                                    \
		took(&in_ocalls, began);                                                           \
		return ms != NULL;                                                                 \
	}
BRIDGE(0, app_ocall_print)
BRIDGE(1, app_ocall_read)
BRIDGE(2, app_ocall_wait)

#ifdef TABLE_ON_HEAP /* no file contains this table */
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

#ifdef SAME_NUMBER
#define ODD 0
#else
#define ODD 1
#endif
#ifdef STATIC_STUBS
#define STUB static
#else
#define STUB
#endif

/* The stubs of two ECALLs, as the SDK's tool writes them. */
STUB int app_ecall_even(unsigned long eid, struct call *ms)
{
	return sgx_ecall(eid, 0, (const void *)&ocall_table_app, ms);
}

STUB int app_ecall_odd(unsigned long eid, struct call *ms)
{
	return sgx_ecall(eid, ODD, (const void *)&ocall_table_app, ms);
}

/* The function of libsgx_uswitchless.a from which workers make OCALLs. */
static void __attribute__((noinline)) process_switchless_call(long line)
{
	int (*const volatile ocall)(void *) = (int (*)(void *))ocall_table_app.ocall[line];
	struct call ms = {0};
	volatile int result = ocall(&ms);

	(void)result;
}

static void nest(void)
{
	struct call ms = {2};

	if (++depth < nested)
		ms.ocalls = 3;
	app_ecall_odd(1, &ms);
	depth--;
}

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
		long began = nanoseconds();

		if (call != sgx_ecall)
			call(1, i % 2, (const void *)&ocall_table_app, &ms);
		else if (i % 2 && !nested)
			app_ecall_odd(1, &ms);
		else
			app_ecall_even(1, &ms);
		took(&around_ecalls, began);
		if (paced && i % 10 == 0)
			usleep(200);
	}
	return unused;
}

static void run(int threads)
{
	pthread_t t[64];

	memset(counted, 0, sizeof(counted));
	urts_in_ecalls = around_ecalls = in_ocalls = urts_around_ocalls = 0;
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	printf("%ld %ld %ld %ld", number * threads, counted[0], counted[1], counted[2]);
	if (urts_timed)
		printf(" %ld %ld %ld %ld", urts_in_ecalls, around_ecalls, in_ocalls,
		       urts_around_ocalls);
	printf("\n");
	fflush(stdout);
}

/* Kills the program at a system call that it does not know: all after io_pgetevents (333), up to those that many programs
 * begin with (424). Those of return probes (335) and of probes (336) are among them. */
static int confine(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 334, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 424, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {sizeof(filter) / sizeof(filter[0]), filter};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static char *self;

/* Serves the commands that are left. */
static void *serve(void *last)
{
	char command[16], line[256];
	int threads;
	pthread_t other;

	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%15s %ld %ld %d", command, &number, &ocalls, &threads) != 4)
			_exit(1);
		call = strcmp(command, "switchless") ? sgx_ecall : sgx_ecall_switchless;
		nested = !strcmp(command, "nested") ? 1 : !strcmp(command, "deep") ? 5 : 0;
		numbered = !strcmp(command, "number");
		paced = !strcmp(command, "paced");
		urts_timed = !strcmp(command, "slow") || !strcmp(command, "confined");
		if (!strcmp(command, "confined") && confine())
			_exit(2);
		if (!strcmp(command, "worker")) {
			while (number-- > 0)
				process_switchless_call(1);
			printf("done\n");
			fflush(stdout);
		} else if (!strcmp(command, "exec")) {
			execl(self, self, line + 5, NULL);
		} else if (!strcmp(command, "fork")) {
			if (!fork()) {
				run(threads);
				_exit(0);
			}
			wait(NULL);
		} else if (!strcmp(command, "leave")) {
			pthread_create(&other, NULL, serve, self);
			pthread_exit(NULL);
		} else {
			run(threads);
		}
	}
	if (last)
		_exit(0);
	return NULL;
}

int main(int argc, char **argv)
{
	int threads;

	self = argv[0];
	if (argc > 1) { /* executed again */
		sscanf(argv[1], "%ld %ld %d", &number, &ocalls, &threads);
		call = sgx_ecall;
		run(threads);
	}
	serve(NULL);
	return 0;
}
