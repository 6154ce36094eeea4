// SPDX-License-Identifier: Apache-2.0
// Has USDT probes as sys/sdt.h writes them: "step" at two places without a semaphore, and "guarded" with one.

#include "sdt.h"

__attribute__((noinline)) long work(long n)
{
	PROBE("step", "0", "8@%0", "r"(n));
	if (app_guarded_semaphore)
		PROBE("guarded", "app_guarded_semaphore", "8@%0", "r"(n));
	PROBE("step", "0", "8@%0 -4@$-5", "r"(n * 7));
	return n + 1;
}

int main(int argc, char **argv)
{
	(void)argv;
	return (int)work(argc);
}
