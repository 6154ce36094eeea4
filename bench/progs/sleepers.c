// SPDX-License-Identifier: Apache-2.0
// Processes that do almost nothing: each wakes up and sleeps again.
//
//   sleepers DIR PROGRAMS PROCESSES WAKES
//
// It makes links to itself in DIR, starts PROCESSES processes of these programs, each of which wakes up WAKES times a
// second, and writes a line when all are started. They end with their parent.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static void sleep_for_ever(long wakes)
{
	struct timespec each = {0, 999999999 / wakes};
	struct timespec first = {0, (getpid() * 7919L) % each.tv_nsec};

	nanosleep(&first, 0);
	for (;;)
		nanosleep(&each, 0);
}

// Starts the other processes of one program. A child ends with the process that started it.
static int start(int processes, long wakes, int started)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; i < processes; i++) {
		switch (fork()) {
		case -1:
			return 1;
		case 0:
			close(started);
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			sleep_for_ever(wakes);
		}
	}
	close(started);
	sleep_for_ever(wakes);
	return 0;
}

int main(int argc, char **argv)
{
	char path[4096], count[16], fd[16], byte;
	int programs, processes, ends[2];

	if (argc == 5 && !strcmp(argv[1], "-"))
		return start(atoi(argv[2]), atol(argv[3]), atoi(argv[4]));
	if (argc != 5 || pipe(ends))
		return 2;
	programs = atoi(argv[2]);
	processes = atoi(argv[3]);
	snprintf(fd, sizeof(fd), "%d", ends[1]);
	for (int i = 0; i < programs; i++) {
		snprintf(path, sizeof(path), "%s/sleeper%03d", argv[1], i);
		snprintf(count, sizeof(count), "%d", processes / programs);
		if (link(argv[0], path))
			return 3;
		switch (fork()) {
		case -1:
			return 4;
		case 0:
			close(ends[0]);
			execl(path, path, "-", count, argv[4], fd, NULL);
			return 5;
		}
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1)) // ends when all have closed it
		return 6;
	printf("started\n");
	fflush(stdout);
	for (;;)
		pause();
}
