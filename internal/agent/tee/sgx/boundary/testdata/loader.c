// SPDX-License-Identifier: Apache-2.0
/* The untrusted part of Gramine, reduced to its counters. Each thread has a control block that begins with its
 * own address and to which GS points. The code increments three counters by `lock incq %gs:OFFSET`. The end of
 * a thread adds them up, resets GS and unmaps them. As in Gramine, threads share the C library's storage with
 * the first thread, so they call no function of it that uses any.
 *
 * Each line of input is COMMAND THREADS OCALLS AEXS. `end` runs threads that do that and end. `stay` leaves
 * them waiting in an OCALL. At the end of input the process prints its totals, as Gramine does, and ends.
 * `kill` ends it while threads still exist.
 *
 * `rpc` starts RPC threads of Exitless, which live on, and waits until all RPC threads together have made OCALLS
 * OCALLs.
 *
 * `share` starts threads that keep the GS of their creator and wait, as RPC threads of Exitless and as each new
 * thread until it sets its own. `vfork` makes a child by vfork() that reads a line and ends. `reset` sets the counters
 * of the first thread to 0, as SIGUSR1 does. With -DDEBUG the counters are set to 0 when a thread ends, as in debug
 * builds of Gramine with sgx.enable_stats. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct tcb {
	struct tcb *self;
	void *tcs, *stack, *alt_stack;
	unsigned char in_profiling;
	unsigned long eenter, eexit, aex, sync_signals, async_signals;
};

enum { STACK = 64 << 10, BLOCK = STACK + 4096 };

static unsigned long totals[5];
static int ended, staying, stay_word;
static long ocalls, aexs;
static int stays;

static long raw(long number, long a, long b, long c, long d)
{
	long result;
	register long r10 asm("r10") = d;

	asm volatile("syscall"
		     : "=a"(result)
		     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
		     : "rcx", "r11", "memory");
	return result;
}

/* As in host_entry.S: entry, asynchronous exit, and exit for an OCALL. */
void sgx_ecall(long code, void *ms);
void async_exit_pointer(void);
long leave(long number, void *args);
asm(".text\n"
    ".globl sgx_ecall, async_exit_pointer, leave\n"
    ".type sgx_ecall, @function\n.type async_exit_pointer, @function\n.type leave, @function\n"
    "sgx_ecall: lea 1f(%rip), %rdx\n"
    "push %rbp\n"
    "lock incq %gs:0x28\n"
    "call in_enclave\n"
    "1: pop %rbp\n"
    "ret\n.size sgx_ecall, .-sgx_ecall\n"
    "async_exit_pointer: lock incq %gs:0x38\n"
    "ret\n.size async_exit_pointer, .-async_exit_pointer\n"
    "leave: lock incq %gs:0x30\n"
    "lea ocall_table(%rip), %rax\n"
    "mov (%rax,%rdi,8), %rax\n"
    "mov %rsi, %rdi\n"
    "push %rbp\n"
    "call *%rax\n"
    "pop %rbp\n"
    "lock incq %gs:0x28\n"
    "ret\n.size leave, .-leave\n");

static struct tcb *current(void)
{
	struct tcb *tcb;

	asm volatile("mov %%gs:0, %0" : "=r"(tcb));
	return tcb;
}

#ifdef DEBUG
static volatile int enable_stats = 1;

void __attribute__((noipa)) update_sgx_stats_on_exit(int print)
{
	unsigned long *c;

	(void)print;
	if (!enable_stats)
		return;
	c = &current()->eenter;
	for (int i = 0; i < 5; i++)
		__atomic_fetch_add(&totals[i], __atomic_exchange_n(&c[i], 0, __ATOMIC_RELAXED),
				   __ATOMIC_RELAXED);
}
#else
static void update_sgx_stats_on_exit(int print)
{
	unsigned long *c = &current()->eenter;

	(void)print;
	for (int i = 0; i < 5; i++)
		__atomic_fetch_add(&totals[i], c[i], __ATOMIC_RELAXED);
}
#endif

void __attribute__((noinline, noreturn)) thread_exit(int status)
{
	struct tcb *t = current();
	void *stack = t->stack;

	raw(SYS_arch_prctl, ARCH_SET_GS, 0, 0, 0);
	__atomic_fetch_add(&ended, 1, __ATOMIC_RELEASE);
	asm volatile("syscall\n mov %0, %%eax\n mov %1, %%edi\n syscall\n" ::"i"(SYS_exit),
		     "r"(status), "a"(SYS_munmap), "D"(stack), "S"((long)BLOCK)
		     : "rcx", "r11", "memory");
	__builtin_unreachable();
}

static long __attribute__((noinline)) sgx_ocall_exit(void *args)
{
	if (args) { /* the whole process */
		update_sgx_stats_on_exit(1);
		printf("%lu %lu %lu %lu %lu\n", totals[0], totals[1], totals[2], totals[3],
		       totals[4]);
		fflush(stdout);
		syscall(SYS_exit_group, 0);
	}
	sgx_ecall(1, NULL); /* ECALL_THREAD_RESET, which returns */
	update_sgx_stats_on_exit(0);
	thread_exit(0);
}

static long __attribute__((noinline)) sgx_ocall_futex(void *args)
{
	__atomic_fetch_add(&staying, 1, __ATOMIC_RELEASE);
	return raw(SYS_futex, (long)args, FUTEX_WAIT, 0, 0);
}

static long __attribute__((noinline)) sgx_ocall_getppid(void *args)
{
	(void)args;
	return raw(SYS_getppid, 0, 0, 0, 0);
}

long (*ocall_table[])(void *) = {sgx_ocall_exit, sgx_ocall_futex, sgx_ocall_getppid};

void __attribute__((noinline)) in_enclave(long code)
{
	if (code == 1)
		return;
	if (code == 2) { /* the main thread: one OCALL shows that it runs */
		leave(2, NULL);
		return;
	}
	for (long i = 0; i < ocalls; i++)
		leave(2, NULL);
	for (long i = 0; i < aexs; i++)
		async_exit_pointer();
	if (stays)
		leave(1, &stay_word);
	leave(0, NULL);
}

static int thread(void *tcb)
{
	raw(SYS_arch_prctl, ARCH_SET_GS, (long)tcb, 0, 0);
	sgx_ecall(0, NULL);
	return 0;
}

static int sharing(void *unused)
{
	(void)unused;
	__atomic_fetch_add(&staying, 1, __ATOMIC_RELEASE);
	raw(SYS_futex, (long)&stay_word, FUTEX_WAIT, 0, 0);
	return 0;
}

static long requests, answered;
static const struct timespec moment = {0, 100000};

/* As in host_ocalls.c: makes OCALLs for threads that stay in the enclave. */
static int rpc_thread_loop(void *unused)
{
	(void)unused;
	for (;;) {
		long left = __atomic_load_n(&requests, __ATOMIC_ACQUIRE), result;

		if (left <= 0) {
			raw(SYS_nanosleep, (long)&moment, 0, 0, 0);
			continue;
		}
		if (!__atomic_compare_exchange_n(&requests, &left, left - 1, 0, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE))
			continue;
		result = ocall_table[2](NULL);
		__atomic_fetch_add(&answered, result >= 0, __ATOMIC_RELEASE);
	}
	return 0;
}

static void rpc(long number)
{
	answered = 0;
	__atomic_store_n(&requests, number, __ATOMIC_RELEASE);
	while (__atomic_load_n(&answered, __ATOMIC_ACQUIRE) != number)
		usleep(100);
}

static void start(int (*function)(void *))
{
	char *stack = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tcb *tcb = (void *)(stack + BLOCK - sizeof(*tcb));

	tcb->self = tcb;
	tcb->stack = stack;
	clone(function, stack + STACK,
	      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM | CLONE_THREAD | CLONE_SIGHAND,
	      tcb);
}

int main(void)
{
	static struct tcb first;
	char command[16], line[128];
	int threads;

	first.self = &first;
	syscall(SYS_arch_prctl, ARCH_SET_GS, &first);
	sgx_ecall(2, NULL);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%15s %d %ld %ld", command, &threads, &ocalls, &aexs) != 4)
			return 1;
		if (!strcmp(command, "kill"))
			syscall(SYS_exit_group, 0);
		if (!strcmp(command, "reset"))
			memset(&first.eenter, 0, 5 * sizeof(first.eenter));
		if (!strcmp(command, "vfork") && !vfork()) {
			raw(SYS_write, 1, (long)"waits\n", 6, 0);
			raw(SYS_read, 0, (long)line, sizeof(line), 0);
			_exit(0);
		}
		if (!strcmp(command, "rpc")) {
			for (int i = 0; i < threads; i++)
				start(rpc_thread_loop);
			rpc(ocalls);
			threads = 0;
		}
		stays = !strcmp(command, "stay") || !strcmp(command, "share");
		staying = ended = 0;
		for (int i = 0; i < threads; i++)
			start(strcmp(command, "share") ? thread : sharing);
		while (__atomic_load_n(stays ? &staying : &ended, __ATOMIC_ACQUIRE) != threads)
			usleep(100);
		printf("done\n");
		fflush(stdout);
	}
	leave(0, &first);
	return 0;
}
