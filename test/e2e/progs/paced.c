// SPDX-License-Identifier: Apache-2.0
// Uses CPU time for argv[2] microseconds each argv[3] microseconds until it is killed, and writes into the file argv[1] how often it
// has done so. The wakeups are at absolute times, so the rate is the same under any load: the program catches up after a delay.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int main(int argc, char **argv)
{
	struct timespec next;
	char text[32];
	int fd;

	if (argc != 4 || (fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644)) < 0)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long done = 1;; done++) {
		long until = used() + atol(argv[2]);

		next.tv_nsec += atol(argv[3]) * 1000;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
		while (used() < until)
			;
		if (pwrite(fd, text, snprintf(text, sizeof text, "%ld\n", done), 0) < 0)
			return 1;
	}
}
