// SPDX-License-Identifier: Apache-2.0
// Waits for a known time, and says how long.
// "waits files FILE N" writes to a file N times, and to the disk after each time. "waits cpus N MS" uses MS milliseconds of CPU
// time in user mode in each of N processes on one CPU.
// "waits pages FILE N" and "waits cached FILE N" read a byte of each of the N pages of a file in memory, which are on the disk only, or in
// the page cache.
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

// Says how long the reads were neither on a CPU nor waiting for one, and how long they waited for one.
static int pages(const char *name, long n, int cold)
{
	static unsigned char here[1 << 16];
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	double began, cpu, before, waited, queue;
	char page[4096] = {1};
	volatile char *map;
	long sum = 0, cached = 0;

	if (fd < 0 || n > (long)sizeof here)
		return 1;
	for (long i = 0; i < n; i++)
		if (write(fd, page, sizeof page) != sizeof page)
			return 1;
	// The kernel drops only pages that are written to the disk and mapped by nobody.
	if (fsync(fd) || (cold && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)))
		return 1;
	map = mmap(0, n * 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED || mincore((void *)map, n * 4096, here))
		return 1;
	for (long i = 0; i < n; i++)
		cached += here[i] & 1;
	if (cold ? cached > 0 : cached < n) {
		fprintf(stderr, "%ld of %ld pages are in the page cache\n", cached, n);
		return 1;
	}
	madvise((void *)map, n * 4096, MADV_RANDOM); // one page at a time
	before = queued();
	cpu = now(CLOCK_THREAD_CPUTIME_ID);
	began = now(CLOCK_MONOTONIC);
	for (long i = 0; i < n; i++)
		sum += map[i * 4096];
	waited = now(CLOCK_MONOTONIC) - began;
	waited -= now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	queue = queued() - before;
	waited -= queue;
	if (sum != n)
		return 1;
	printf("operations: %ld\nwaited: %.6f\nqueued: %.6f\n", n, waited > 0 ? waited : 0, queue);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && (!strcmp(argv[1], "pages") || !strcmp(argv[1], "cached")))
		return pages(argv[2], atol(argv[3]), !strcmp(argv[1], "pages"));
	if (argc == 4 && !strcmp(argv[1], "files"))
		return files(argv[2], atol(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "cpus"))
		return cpus(atol(argv[2]), atof(argv[3]));
	return 2;
}
