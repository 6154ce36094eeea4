// SPDX-License-Identifier: Apache-2.0
// forks.c has several threads with names, children and a program that it executes, for recordings of perf.
// gcc -O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread -o forks forks.c
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static double cpu(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void spin(int n) {
	for (int i = 0; i < n; i++)
		sink = sink * 31 + i;
}

__attribute__((noinline)) void alpha(double s) {
	for (double end = cpu() + s; cpu() < end;)
		spin(20000);
}

__attribute__((noinline)) void beta(double s) {
	for (double end = cpu() + s; cpu() < end;) {
		char *p = malloc(1 << 20);
		memset(p, 1, 1 << 20);
		sink += p[77];
		free(p);
	}
}

__attribute__((noinline)) void deep(int n, double s) {
	if (n > 0)
		deep(n - 1, s);
	else
		alpha(s);
	sink++;
}

static double unit;

static void *worker(void *name) {
	prctl(PR_SET_NAME, name);
	alpha(unit);
	prctl(PR_SET_NAME, "renamed");
	beta(unit);
	return NULL;
}

int main(int argc, char **argv) {
	unit = argc > 1 ? atof(argv[1]) : 0.1;
	if (argc > 2) {
		deep(20, unit);
		return 0;
	}
	pthread_t t[3];
	char *names[] = {"first", "second", "third one"};
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, worker, names[i]);
	for (int i = 0; i < 3; i++) {
		if (fork() == 0) {
			if (i == 2)
				execl("/proc/self/exe", "other", argv[1] ? argv[1] : "0.1", "child", (char *)NULL);
			alpha(unit);
			_exit(0);
		}
	}
	deep(10, unit);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	while (wait(NULL) > 0)
		;
	return 0;
}
