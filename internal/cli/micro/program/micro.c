// SPDX-License-Identifier: Apache-2.0

// Repeats one operation for some time and prints a line as Go's benchmarks do, so that "teescope record" reads them. It makes
// no threads and processes of its own besides those that it measures.
//
//   micro threads|fork|syscalls|pipes|files|malloc|clock SECONDS
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLICES 20 // of the time

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void *nothing(void *arg)
{
	return arg;
}

// Creates 100 threads and waits for all of them.
static int threads(void)
{
	enum { N = 100 };
	pthread_t all[N];
	for (int i = 0; i < N; i++)
		if (pthread_create(&all[i], NULL, nothing, NULL))
			die("pthread_create");
	for (int i = 0; i < N; i++)
		pthread_join(all[i], NULL);
	return N;
}

static int forks(void)
{
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0)
		_exit(0);
	if (waitpid(pid, NULL, 0) != pid)
		die("waitpid");
	return 1;
}

static int syscalls(void)
{
	enum { N = 1000 };
	for (int i = 0; i < N; i++)
		syscall(SYS_getppid);
	return N;
}

// Writes a byte into a pipe and reads it.
static int pipes(void)
{
	enum { N = 100 };
	static int ends[2];
	char byte = 0;
	if (ends[1] == 0 && pipe(ends))
		die("pipe");
	for (int i = 0; i < N; i++)
		if (write(ends[1], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
			die("pipe");
	return N;
}

// Creates a file, writes 4 KiB, reads them, and removes it.
static int files(void)
{
	static char data[4096], name[64];
	if (!name[0])
		snprintf(name, sizeof(name), "/tmp/teescope-micro-%d", getpid());
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		die(name);
	if (write(fd, data, sizeof(data)) != sizeof(data) ||
	    pread(fd, data, sizeof(data), 0) != sizeof(data))
		die(name);
	if (close(fd) || unlink(name))
		die(name);
	return 1;
}

// Allocates 16 bytes to 64 KiB and writes to the first one.
static int mallocs(void)
{
	enum { N = 1000 };
	static char *volatile kept[64];
	for (int i = 0; i < N; i++) {
		char *p = malloc((size_t)16 << (i % 13));
		if (!p)
			die("malloc");
		*p = 1;
		free(kept[i % 64]);
		kept[i % 64] = p;
	}
	return N;
}

static int clocks(void)
{
	enum { N = 1000 };
	struct timespec now;
	for (int i = 0; i < N; i++)
		clock_gettime(CLOCK_MONOTONIC, &now);
	return N;
}

static const struct {
	const char *name, *title;
	int (*batch)(void); // returns the number of operations
} kinds[] = {
	{"threads", "Threads", threads},    {"fork", "Fork", forks},
	{"syscalls", "Syscalls", syscalls}, {"pipes", "Pipes", pipes},
	{"files", "Files", files},	    {"malloc", "Malloc", mallocs},
	{"clock", "Clock", clocks},
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	double seconds = argc == 3 ? atof(argv[2]) : 0, each[SLICES], took = 0;
	long all = 0;
	for (size_t k = 0; seconds > 0 && k < sizeof(kinds) / sizeof(*kinds); k++) {
		if (strcmp(argv[1], kinds[k].name))
			continue;
		kinds[k].batch(); // the first one also loads what the others find loaded
		for (int i = 0; i < SLICES; i++) {
			long n = 0;
			double from = now(), to;
			do {
				n += kinds[k].batch();
				to = now();
			} while (to < from + seconds * 1e9 / SLICES);
			each[i] = (to - from) / n;
			all += n;
			took += to - from;
		}
		printf("Benchmark%s\t%ld\t%.2f ns/op\n", kinds[k].title, all, took / all);
		qsort(each, SLICES, sizeof(*each), ascending);
		// The 6th and the 15th of 20 values are the exact interval of the median at 95.9 %.
		printf("%s: %.2f ns/op [%.2f, %.2f], median of %d slices of time with its interval "
		       "at 95 %%\n",
		       argv[1], (each[9] + each[10]) / 2, each[5], each[14], SLICES);
		return 0;
	}
	fprintf(stderr, "usage: %s threads|fork|syscalls|pipes|files|malloc|clock SECONDS\n",
		argv[0]);
	return 2;
}
