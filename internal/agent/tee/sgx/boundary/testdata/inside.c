// SPDX-License-Identifier: Apache-2.0
// Takes page faults with registers as after an asynchronous exit of an enclave: RAX is ERESUME, RCX is RIP and R11 is 0.
// Prints the address of an instruction that stands for ENCLU. Then each line "KIND N" does N times:
//
//	f	a page fault in the enclave, and ERESUME
//	n	a page fault in the enclave, an EENTER of a handler, and ERESUME
//	r	ERESUME alone, as after an exception
//	e	EENTER
//	u	a page fault in the enclave alone
//	s	a page fault with the flags in R11, as if the thread had just returned from a system call
//	h	page faults in the enclave, of huge pages, each of which takes the kernel long, for N milliseconds of CPU time. Prints how many
//	t	nothing, but it waits in the enclave for N milliseconds on one processor, for its timer. Prints how many interrupts
//		of the timer that processor had meanwhile.
//	g	as t, after a page fault in the enclave which ends in a signal, whose handler jumps out of it
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

void way_in(long leaf);
void touch(char *page, long r11);
void wait_inside(void);
extern char instruction[], waiting[], over[];
asm("	.globl way_in, instruction, touch, wait_inside, waiting, over\n"
    "way_in:	mov %rdi, %rax\n"
    "instruction:	nop\n"
    "	ret\n"
    "touch:	mov %rsi, %r11\n"
    "	mov $3, %eax\n"
    "	lea 1f(%rip), %rcx\n"
    "1:	movb $1, (%rdi)\n"
    "	ret\n"
    "wait_inside:	xor %r11d, %r11d\n"
    "	mov $3, %eax\n"
    "	lea waiting(%rip), %rcx\n"
    "waiting:	jmp waiting\n"
    "over:	ret\n");

enum { ENTER = 2, RESUME = 3, PAGE = 4096 };

static void leave(int signal, siginfo_t *info, void *context)
{
	greg_t *ip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)signal, (void)info;
	if (*ip == (greg_t)waiting)
		*ip = (greg_t)over;
}

static sigjmp_buf before_fault;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(before_fault, 1);
}

// Takes a page fault at an address without memory.
static void fault_badly(void)
{
	if (!sigsetjmp(before_fault, 1))
		touch(NULL, 0);
}

static long milliseconds;
static pthread_t self;
static volatile int done;

static void *stop(void *arg)
{
	usleep(milliseconds * 1000);
	while (!done) { // the first signal may come too early
		pthread_kill(self, SIGUSR1);
		usleep(1000);
	}
	return arg;
}

// Returns the interrupts of a processor's timer (/proc/interrupts, LOC).
static long timer(int cpu)
{
	FILE *f = fopen("/proc/interrupts", "r");
	char line[8192], *at;
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		if ((at = strstr(line, "LOC:"))) {
			at += 4;
			for (int i = 0; i <= cpu; i++)
				n = strtol(at, &at, 10);
		}
	if (f)
		fclose(f);
	return n;
}

// Returns how many interrupts the timer had.
static long wait_for_timer(int badly)
{
	struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO};
	cpu_set_t all, one;
	pthread_t stopper;
	int cpu = sched_getcpu();
	long before;

	sigaction(SIGUSR1, &action, NULL);
	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	self = pthread_self();
	done = 0;
	pthread_create(&stopper, NULL, stop, NULL);
	sched_setaffinity(0, sizeof(one), &one);
	before = timer(cpu);
	if (badly) {
		fault_badly(); // the memory that it uses is there
		fault_badly();
	}
	wait_inside();
	done = 1;
	before = timer(cpu) - before;
	pthread_join(stopper, NULL);
	sched_setaffinity(0, sizeof(all), &all);
	return before;
}

// Returns how many page faults of huge pages it took in that CPU time, nearly all of which the kernel needs for them.
static long fault_huge(long ms)
{
	enum { HUGE = 2 << 20 };
	char *pages =
		mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *page = (char *)(((unsigned long)pages + HUGE - 1) & -(unsigned long)HUGE);
	clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000);
	long faults = 0;

	madvise(page, HUGE, MADV_HUGEPAGE);
	for (; clock() < end; faults++) {
		touch(page, 0);
		madvise(page, HUGE, MADV_DONTNEED);
	}
	munmap(pages, 2 * HUGE);
	return faults;
}

int main(void)
{
	char kind;
	long n, i;

	signal(SIGSEGV, jump);
	setvbuf(stdin, NULL, _IONBF, 0);
	printf("%lu\n", (unsigned long)instruction);
	fflush(stdout);
	while (scanf(" %c %ld", &kind, &n) == 2) {
		if (kind == 'h') {
			printf("%ld\n", fault_huge(n));
			fflush(stdout);
			continue;
		}
		char *pages = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		madvise(pages, n * PAGE, MADV_NOHUGEPAGE);
		for (i = 0; i < n && !strchr("tg", kind); i++) {
			if (strchr("fnus", kind))
				touch(pages + i * PAGE, kind == 's' ? 0x246 : 0);
			if (strchr("ne", kind))
				way_in(ENTER);
			if (strchr("fnr", kind))
				way_in(RESUME);
		}
		munmap(pages, n * PAGE);
		milliseconds = n;
		printf("%ld\n", strchr("tg", kind) ? wait_for_timer(kind == 'g') : n);
		fflush(stdout);
	}
	return 0;
}
