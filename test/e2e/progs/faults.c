// SPDX-License-Identifier: Apache-2.0
// Causes page faults of each kind and prints their number according to getrusage: reads and writes of
// fresh memory, a write to a shared zero page, copies after a fork, faults inside a system call, and
// instruction fetches. The last line is "minor major" for the process; children are waited for.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char *fresh(size_t pages, int prot)
{
	char *p = mmap(0, pages * 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		exit(1);
	madvise(p, pages * 4096, MADV_NOHUGEPAGE);
	return p;
}

int main(int argc, char **argv)
{
	size_t n = argc > 1 ? strtoul(argv[1], 0, 10) : 10000;
	volatile char *p;
	int zero = open("/dev/zero", O_RDONLY), status;
	struct rusage self, children;
	char sum = 0;

	p = fresh(n, PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < n; i++) // no page found, writing
		p[i * 4096] = 1;
	p = fresh(n, PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < n; i++) // no page found, reading: the zero page
		sum += p[i * 4096];
	for (size_t i = 0; i < n; i++) // write to a present, read-only page
		p[i * 4096] = 2;
	p = fresh(n, PROT_READ | PROT_WRITE);
	for (size_t i = 0; i < n; i++) // in kernel mode: read() writes to fresh memory
		if (read(zero, (char *)p + i * 4096, 1) != 1)
			return 1;
	if (fork() == 0) { // copy on write
		for (size_t i = 0; i < n; i++)
			p[i * 4096] = 3;
		_exit(0);
	}
	wait(&status);
	for (size_t i = 0; i < n;
	     i++) // the parent no longer shares its pages, but they are still read-only
		p[i * 4096] = 4;

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	printf("%ld %ld\n", self.ru_minflt + children.ru_minflt,
	       self.ru_majflt + children.ru_majflt);
	fflush(stdout);
	return sum;
}
