// SPDX-License-Identifier: Apache-2.0
/* Spends about 60, 30 and 10 % of the given CPU time in three functions, and prints the time of each by its own clock readings.
 * The length of the calls is random, so that no sampling rate is in step with them. At the end the program waits for the end of
 * its input.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#define WORK(name, factor)                                                                         \
	__attribute__((noinline)) uint64_t name(uint64_t n)                                        \
	{                                                                                          \
		uint64_t x = n;                                                                    \
                                                                                                   \
		while (n--)                                                                        \
			x = x * factor + 1442695040888963407ULL;                                   \
		return x;                                                                          \
	}

WORK(sixty, 6364136223846793005ULL)
WORK(thirty, 2862933555777941757ULL)
WORK(ten, 3202034522624059733ULL)

int main(int argc, char **argv)
{
	uint64_t limit = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000000 : 0, spent[3] = {0};
	uint64_t random = 1, sum = 0, at = now();
	char end;

	while (at < limit) {
		uint64_t n, next;

		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		n = 2000 + (random >> 33) % 20000;
		sum += sixty(6 * n);
		next = now();
		spent[0] += next - at;
		at = next;
		sum += thirty(3 * n);
		next = now();
		spent[1] += next - at;
		at = next;
		sum += ten(n);
		next = now();
		spent[2] += next - at;
		at = next;
	}
	printf("%llu %llu %llu %d\n", (unsigned long long)spent[0], (unsigned long long)spent[1],
	       (unsigned long long)spent[2], (int)(sum & 1));
	fflush(stdout);
	while (read(0, &end, 1) > 0)
		;
	return 0;
}
