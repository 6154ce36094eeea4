// SPDX-License-Identifier: Apache-2.0
// pingpong N: N round trips of one byte between two processes over pipes, both on CPU 0, so that each
// trip causes two context switches. Prints the switches that getrusage counted: voluntary, involuntary.
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000, there[2], back[2], status;
	struct rusage self, child;
	cpu_set_t first;
	char c = 0;

	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof first, &first);
	if (pipe(there) || pipe(back))
		return 1;
	if (fork() == 0) {
		for (int i = 0; i < n; i++)
			if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
				_exit(1);
		_exit(0);
	}
	for (int i = 0; i < n; i++)
		if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			return 1;
	wait(&status);
	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &child);
	printf("%ld %ld\n", self.ru_nvcsw + child.ru_nvcsw, self.ru_nivcsw + child.ru_nivcsw);
	return status != 0;
}
