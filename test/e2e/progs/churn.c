// SPDX-License-Identifier: Apache-2.0
// churn: repeatedly starts a thread that makes one call, and waits for its end, until the end of the input.
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *brief(void *unused)
{
	syscall(SYS_getpgid, 0);
	return unused;
}

int main(void)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	pthread_t thread;

	for (unsigned int i = 1;; i++) {
		if (pthread_create(&thread, 0, brief, 0) || pthread_join(thread, 0))
			return 1;
		if (i % 1000 == 0 && poll(&input, 1, 0) > 0)
			return 0;
	}
}
