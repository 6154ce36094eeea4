// SPDX-License-Identifier: Apache-2.0
// Makes ten calls of getpgid each millisecond until it is killed. The wakeups are at absolute times, so
// the rate is 10,000 a second under any load: the program catches up after a delay.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		next.tv_nsec += 1000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
		for (int i = 0; i < 10; i++)
			syscall(SYS_getpgid, 0);
	}
}
