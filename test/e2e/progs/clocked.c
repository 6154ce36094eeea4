// SPDX-License-Identifier: Apache-2.0
// Makes a number of operations, each of which is one call of getpgid. With a second argument, it reads the time with a
// system call, and not with the vDSO, as often in each operation.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct timespec now;
	long operations = argc > 1 ? atol(argv[1]) : 0;
	long reads = argc > 2 ? atol(argv[2]) : 0;

	for (long i = 0; i < operations; i++) {
		syscall(SYS_getpgid, 0);
		for (long k = 0; k < reads; k++)
			syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	}
	printf("operations: %ld\n", operations);
	return 0;
}
