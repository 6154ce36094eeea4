// SPDX-License-Identifier: Apache-2.0
// Threads that allocate small blocks with Glibc, in an address space as small as that of an enclave. It has no enclave: inside
// of one, a library OS would run the same Glibc. Glibc reserves 64 MiB for each thread that allocates. If that fails, each
// allocation tries again, and takes a page.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "app.h"

static long threads = 16, mib = 256, hold;
static struct limit limit = {.count = 500};
static pthread_barrier_t allocated, released;

static void *allocate(void *arg)
{
	long *done = arg;

	for (; limit_more(&limit, *done); ++*done) {
		char *block = malloc(64); // kept, as the data of an application

		if (!block) {
			perror("arenas: malloc");
			exit(1);
		}
		memset(block, 1, 64);
	}
	pthread_barrier_wait(&allocated);
	pthread_barrier_wait(&released);
	return NULL;
}

static long faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt;
}

int main(int argc, char **argv)
{
	const struct option list[] = {
		{"threads", &threads, "number of threads"},
		{"count", &limit.count, "allocations of each thread"},
		{"mib", &mib, "MiB of address space"},
		{"hold", &hold, "1: the threads live until the program is killed"},
		{},
	};
	bool gramine = argc > 3 &&
		       !strcmp(argv[2],
			       "init"); // LOADER LIBPAL init APPLICATION, as Gramine's command line
	pthread_t *all;
	pthread_attr_t attributes;
	long *done, sum = 0, before;
	double seconds;

	options(argc - 3 * gramine, argv + 3 * gramine, list);
	all = calloc(threads, sizeof(*all));
	done = calloc(threads, sizeof(*done));
	pthread_barrier_init(&allocated, NULL, threads + 1);
	pthread_barrier_init(&released, NULL, threads + 1);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 256 << 10); // Gramine's default
	if (setrlimit(RLIMIT_AS, &(struct rlimit){mib << 20, mib << 20})) {
		perror("arenas: setrlimit");
		return 1;
	}
	limit_start(&limit);
	before = faults();
	for (long i = 0; i < threads; i++)
		if (pthread_create(&all[i], &attributes, allocate, &done[i])) {
			fprintf(stderr, "arenas: thread %ld cannot start\n", i);
			return 1;
		}
	pthread_barrier_wait(&allocated);
	seconds = limit_seconds(&limit);
	for (long i = 0; i < threads; i++)
		sum += done[i];
	printf("{\"program\":\"arenas\",\"seconds\":%.6f,\"allocations\":%ld,\"faults\":%ld}\n",
	       seconds, sum, faults() - before);
	fflush(stdout);
	if (hold)
		pause();
	pthread_barrier_wait(&released);
	for (long i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	return 0;
}
