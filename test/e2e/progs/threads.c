// SPDX-License-Identifier: Apache-2.0
// threads N: starts N threads that sleep, prints the number of threads including the first one, and
// ends at the end of its input.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *sleeper(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	pthread_attr_t small;
	pthread_t thread;
	char byte;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int i = 0; i < n; i++)
		if (pthread_create(&thread, &small, sleeper, 0))
			return 1;
	printf("%d\n", n + 1);
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
