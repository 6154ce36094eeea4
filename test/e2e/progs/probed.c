// SPDX-License-Identifier: Apache-2.0
// Has events for probes of the user, in known numbers: system calls with known sizes and errors, calls of functions, and
// USDT probes as sys/sdt.h writes them. It first reads a byte, and finally waits for the end of its input.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../../internal/agent/tee/sgx/boundary/testdata/sdt.h"

/* Takes a millisecond or more if n is 3 or 7. */
__attribute__((noinline)) int work(int n)
{
	struct timespec moment = {0, 1000000};

	if (n % 4 == 3)
		nanosleep(&moment, 0);
	return n % 2 ? -n : n;
}

/* Calls itself n times. */
__attribute__((noinline)) int deep(int n)
{
	asm volatile("");
	return n ? deep(n - 1) + 1 : 0;
}

__attribute__((noinline)) void steps(void)
{
	for (long i = 0; i < 30; i++) {
		int kind = i % 3;

		PROBE("step", "0", "-4@%0 8@%1", "r"(kind), "r"(2 * i));
		if (app_guarded_semaphore)
			PROBE("guarded", "app_guarded_semaphore", "8@%0", "r"(i));
	}
}

int main(void)
{
	char buf[1024] = {0};
	int null = 100; /* a number that no inherited file has */

	if (dup2(open("/dev/null", O_WRONLY), null) != null || read(0, buf, 1) != 1)
		return 1;
	for (int i = 0; i < 10000; i++)
		syscall(SYS_getppid);
	for (int i = 0; i < 100; i++)
		if (write(null, buf, 1 + 10 * i) != 1 + 10 * i)
			return 1;
	for (int i = 0; i < 10; i++)
		if (write(-1, buf, 5) != -1)
			return 1;
	for (int i = 0; i < 40; i++)
		work(i % 8);
	deep(4);
	steps();
	if (write(1, "done\n", 5) != 5)
		return 1;
	while (read(0, buf, 1) > 0)
		;
	return 0;
}
