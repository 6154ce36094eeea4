// SPDX-License-Identifier: Apache-2.0
// A load without a client: it repeats one system call, or creates and joins threads.
//
//   loop FILE threads
//   loop FILE NUMBER [CALLS BURST]
//
// FILE holds two words that both sides have mapped: the number of repetitions so far, and whether to begin. With
// CALLS it makes that many calls, pauses for 10 ms after each BURST of them, and then waits to be killed.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { DONE, BEGIN };

static void *nothing(void *arg)
{
	return arg;
}

static int churn(volatile unsigned long *words)
{
	pthread_t thread;

	for (;;) {
		if (pthread_create(&thread, 0, nothing, 0) || pthread_join(thread, 0))
			return 1;
		words[DONE]++;
	}
}

int main(int argc, char **argv)
{
	struct timespec moment = {0, 10000000};
	unsigned long calls = argc > 4 ? strtoul(argv[3], 0, 10) : 0;
	unsigned long burst = argc > 4 ? strtoul(argv[4], 0, 10) : 0;
	int file = argc > 2 ? open(argv[1], O_RDWR) : -1;
	volatile unsigned long *words;
	long number;

	if (file < 0)
		return 2;
	words = mmap(0, 2 * sizeof(*words), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (words == MAP_FAILED)
		return 2;
	while (!words[BEGIN])
		nanosleep(&moment, 0);
	if (!strcmp(argv[2], "threads"))
		return churn(words);
	number = atol(argv[2]);
	while (!calls || words[DONE] < calls) {
		syscall(number);
		words[DONE]++;
		if (burst && words[DONE] % burst == 0)
			nanosleep(&moment, 0);
	}
	for (;;)
		pause();
}
