// SPDX-License-Identifier: Apache-2.0
// Waits for a known time, and says how long.
// "waits files FILE N" writes to a file N times, and to the disk after each time. "waits cpus N MS" uses MS milliseconds of CPU
// time in user mode in each of N processes on one CPU.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int files(const char *name, long n)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	double waited = 0, began;
	char page[4096] = {0};

	for (long i = 0; i < n; i++) {
		if (fd < 0 || write(fd, page, sizeof page) != sizeof page)
			return 1;
		began = now(CLOCK_MONOTONIC);
		if (fsync(fd))
			return 1;
		waited += now(CLOCK_MONOTONIC) - began;
	}
	printf("operations: %ld\nwaited: %.6f\n", n, waited);
	return 0;
}

// The second number of schedstat is the time that a thread was ready to run and waited for a CPU.
static double queued(void)
{
	unsigned long long ran = 0, waited = 0;
	FILE *f = fopen("/proc/self/schedstat", "r");

	if (!f || fscanf(f, "%llu %llu", &ran, &waited) != 2)
		exit(1);
	fclose(f);
	return waited / 1e9;
}

static int cpus(long n, double ms)
{
	double *waited = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
	       sum = 0;
	volatile unsigned long x = 0;
	int status;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (n > 100 || sched_setaffinity(0, sizeof one, &one))
		return 1;
	for (long i = 0; i < n; i++) {
		if (fork())
			continue;
		while (now(CLOCK_PROCESS_CPUTIME_ID) < ms / 1e3)
			for (int k = 0; k < 1000000; k++)
				x += k;
		waited[i] = queued();
		_exit(0);
	}
	for (long i = 0; i < n; i++)
		if (wait(&status) < 0 || status)
			return 1;
	for (long i = 0; i < n; i++)
		sum += waited[i];
	printf("operations: 1\nwaited: %.6f\n", sum);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "files"))
		return files(argv[2], atol(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "cpus"))
		return cpus(atol(argv[2]), atof(argv[3]));
	return 2;
}
