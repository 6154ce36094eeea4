// SPDX-License-Identifier: Apache-2.0
// Touches argv[3] MiB of memory. Uses CPU time for argv[1] milliseconds in user mode and argv[2] in the
// kernel. Prints "done" and waits for the end of its input, so that a test can read /proc while it is idle.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	double user = argc > 1 ? atof(argv[1]) : 1000, system = argc > 2 ? atof(argv[2]) : 0, end;
	static char buf[1 << 16];
	volatile unsigned long x = 0;
	FILE *zero = fopen("/dev/zero", "r");
	size_t touch = argc > 3 ? strtoul(argv[3], 0, 10) << 20 : 0;
	char c, *memory = malloc(touch + 1);

	memset(memory, 1, touch);

	setvbuf(zero, 0, _IONBF, 0);
	for (end = now() + user; now() < end;)
		for (int i = 0; i < 1000000; i++)
			x += i;
	for (end = now() + system; now() < end;)
		for (int i = 0; i < 100; i++)
			if (read(fileno(zero), buf, sizeof buf) < 0)
				return 1;
	puts("done");
	fflush(stdout);
	return read(0, &c, 1) < 0 || memory[touch / 2] > 1;
}
