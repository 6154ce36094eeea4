// SPDX-License-Identifier: Apache-2.0
// Has events for probes of the user, in known numbers: system calls with known sizes and errors, calls of functions, and
// USDT probes as sys/sdt.h writes them. It first reads a byte, and finally waits for the end of its input.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PROBE(name, semaphore, args, ...)                                                          \
	asm volatile("990: nop\n"                                                                  \
		     ".pushsection .note.stapsdt,\"?\",\"note\"\n"                                 \
		     ".balign 4\n"                                                                 \
		     ".4byte 992f-991f, 994f-993f, 3\n"                                            \
		     "991: .asciz \"stapsdt\"\n"                                                   \
		     "992: .balign 4\n"                                                            \
		     "993: .8byte 990b\n"                                                          \
		     ".8byte _.stapsdt.base\n"                                                     \
		     ".8byte " semaphore "\n"                                                      \
		     ".asciz \"app\"\n"                                                            \
		     ".asciz \"" name "\"\n"                                                       \
		     ".asciz \"" args "\"\n"                                                       \
		     "994: .balign 4\n"                                                            \
		     ".popsection\n"                                                               \
		     ".ifndef _.stapsdt.base\n"                                                    \
		     ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"       \
		     ".weak _.stapsdt.base\n"                                                      \
		     ".hidden _.stapsdt.base\n"                                                    \
		     "_.stapsdt.base: .space 1\n"                                                  \
		     ".size _.stapsdt.base,1\n"                                                    \
		     ".popsection\n"                                                               \
		     ".endif\n" ::__VA_ARGS__)

unsigned short app_guarded_semaphore __attribute__((section(".probes"), used));

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
