// SPDX-License-Identifier: Apache-2.0
// Makes numbers of system calls that it knows, waits, and runs code with the registers that the host sees of an enclave.
// Each line of input is one of
//
//	calls N		N times: 3 calls of getppid in three(), one of getuid in one()
//	waits N		N times: a sleep of 4 ms in naps()
//	pipe N		N times: reads from a pipe in reads(), which another thread writes to 4 ms later
//	lock N		N times: waits in locks() for a mutex that another thread holds for 4 ms
//	signals N	N times: a signal whose handler calls getuid in one(), from raises()
//	exits N		N times: a process ends that has the ID of the one before
//	faults N	N page faults in touch() and N in touches(), with the registers of an enclave in touch()
//	inside N	N ms of CPU time in inside(), and as much in outside()
//
// Each is answered by a line.
#define _GNU_SOURCE
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

static inline __attribute__((always_inline)) long call(long number)
{
	long result;

	asm volatile("syscall" : "=a"(result) : "a"(number) : "rcx", "r11", "memory");
	return result;
}

NOINLINE static void three(void)
{
	for (int i = 0; i < 3; i++)
		call(SYS_getppid);
}

NOINLINE static void one(void)
{
	call(SYS_getuid);
	asm volatile("");
}

NOINLINE static void nap(void)
{
	struct timespec time = {0, 4000000};

	nanosleep(&time, NULL);
	asm volatile("");
}

NOINLINE static void naps(void)
{
	nap();
	asm volatile("");
}

static int ends[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile int holds;

static void on_signal(int number)
{
	(void)number;
	one();
	asm volatile("");
}

NOINLINE static void raises(void)
{
	kill(getpid(), SIGUSR1);
	asm volatile("");
}

static void *writes(void *unused)
{
	nap();
	if (write(ends[1], "x", 1) != 1)
		_exit(1);
	return unused;
}

static void *holder(void *unused)
{
	pthread_mutex_lock(&mutex);
	holds = 1;
	nap();
	pthread_mutex_unlock(&mutex);
	return unused;
}

NOINLINE static void reads(void)
{
	char c;

	if (read(ends[0], &c, 1) != 1)
		_exit(1);
}

NOINLINE static void locks(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void exits(void)
{
	static pid_t pid;
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (unsigned long)&pid,
		.set_tid_size = pid != 0,
	};
	long child;

	if (!pid)
		args.set_tid = 0;
	child = syscall(SYS_clone3, &args, sizeof(args));
	if (child <= 0)
		_exit(child < 0);
	pid = child;
	waitpid(pid, NULL, 0);
}

void inside(void);
extern char spin[], over[];
asm("	.type inside, @function\n"
    "	.globl inside, spin, over\n"
    "inside:	push %rbp\n"
    "	mov %rsp, %rbp\n"
    "	push %rbx\n"
    "	mov $0x7ffabc000, %rbx\n"
    "	xor %r11d, %r11d\n"
    "	mov $3, %eax\n"
    "	lea spin(%rip), %rcx\n"
    "spin:	jmp spin\n"
    "over:	pop %rbx\n"
    "	pop %rbp\n"
    "	ret\n"
    "	.size inside, .-inside\n");

void touch(char *page);
asm("	.type touch, @function\n"
    "	.globl touch\n"
    "touch:	push %rbp\n"
    "	mov %rsp, %rbp\n"
    "	push %rbx\n"
    "	mov $0x7ffabc000, %rbx\n"
    "	xor %r11d, %r11d\n"
    "	mov $3, %eax\n"
    "	lea 1f(%rip), %rcx\n"
    "1:	movb $1, (%rdi)\n"
    "	pop %rbx\n"
    "	pop %rbp\n"
    "	ret\n"
    "	.size touch, .-touch\n");

NOINLINE static void touches(void)
{
	static char *page;

	if (!page)
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(page, 4096, MADV_DONTNEED);
	touch(page);
	madvise(page, 4096, MADV_DONTNEED);
	*(volatile char *)page = 1;
}

static volatile int ended;

static void leave(int number, siginfo_t *info, void *context)
{
	greg_t *ip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	(void)number, (void)info;
	if (*ip == (greg_t)spin)
		*ip = (greg_t)over;
	ended = 1;
}

NOINLINE static void outside(void)
{
	while (!ended)
		asm volatile("");
	asm volatile("");
}

static void after(long milliseconds)
{
	struct itimerval timer = {.it_value = {milliseconds / 1000, milliseconds % 1000 * 1000}};

	ended = 0;
	setitimer(ITIMER_PROF, &timer, NULL);
}

static void with(void *(*other)(void *), void (*f)(void))
{
	pthread_t thread;

	holds = 0;
	pthread_create(&thread, NULL, other, NULL);
	while (other == holder && !holds)
		usleep(100);
	f();
	pthread_join(thread, NULL);
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO};
	char line[64], what[16];
	long n;

	if (pipe(ends))
		return 1;
	sigaction(SIGPROF, &action, NULL);
	signal(SIGUSR1, on_signal);
	while (fgets(line, sizeof(line), stdin) && sscanf(line, "%15s %ld", what, &n) == 2) {
		if (!strcmp(what, "inside")) {
			after(n);
			inside();
			after(n);
			outside();
			n = 0;
		}
		for (long i = 0; i < n; i++)
			if (!strcmp(what, "calls")) {
				three();
				one();
			} else if (!strcmp(what, "signals")) {
				raises();
			} else if (!strcmp(what, "waits")) {
				naps();
			} else if (!strcmp(what, "faults")) {
				touches();
			} else if (!strcmp(what, "exits")) {
				exits();
			} else if (!strcmp(what, "pipe")) {
				with(writes, reads);
			} else {
				with(holder, locks);
			}
		printf("0 0 0 0\n");
		fflush(stdout);
	}
	return 0;
}
