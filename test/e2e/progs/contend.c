// SPDX-License-Identifier: Apache-2.0
// contend N: N threads that repeatedly take one lock and hold it for some microseconds, until the end of the input. The
// lock is fair: a thread that releases it goes to the end of the queue and sleeps. So each hold is a wait and a wake, on
// any number of processors.
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int queue, turn; // the next ticket, and the one that holds the lock

static void *worker(void *unused)
{
	for (;;) {
		int mine = atomic_fetch_add(&queue, 1), now;

		while ((now = atomic_load(&turn)) != mine)
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, 0, 0, 0);
		for (volatile int i = 0; i < 2000; i++)
			;
		atomic_fetch_add(&turn, 1);
		syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, INT_MAX, 0, 0, 0);
	}
	return unused;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 8;
	pthread_t thread;
	char byte;

	while (n-- > 0)
		if (pthread_create(&thread, 0, worker, 0))
			return 1;
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
