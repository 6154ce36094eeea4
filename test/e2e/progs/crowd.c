// SPDX-License-Identifier: Apache-2.0
/* Runs named threads until the end of the input: one computes, one alternates between computing and
 * sleeping, and N sleep. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void compute(void)
{
	for (volatile int i = 0; i < 1000000; i++)
		;
}

static void *busy(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (;;)
		compute();
	return NULL;
}

static void *half(void *name)
{
	struct timespec pause = {0, 2000000};

	pthread_setname_np(pthread_self(), name);
	for (;;) {
		compute();
		nanosleep(&pause, NULL);
	}
	return NULL;
}

static void *sleeper(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (;;)
		pause();
	return NULL;
}

static void start(void *(*run)(void *), void *name)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 * 1024);
	if (pthread_create(&thread, &small, run, name)) {
		perror("pthread_create");
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int sleepers = argc > 1 ? atoi(argv[1]) : 0;
	char c;

	start(busy, "crowd busy");
	start(half, "crowd half");
	for (int i = 0; i < sleepers; i++)
		start(sleeper, "crowd sleeper");
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
