// SPDX-License-Identifier: Apache-2.0
// Makes calls of getpgid in bursts until it is killed: 100,000 calls, then it sleeps until the next third of a
// second. The sampling has a period of one second: three bursts are in each period, wherever it begins.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		for (int i = 0; i < 100000; i++)
			syscall(SYS_getpgid, 0);
		next.tv_nsec += 333333333;
		if (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, 0);
	}
}
