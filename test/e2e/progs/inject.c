// SPDX-License-Identifier: Apache-2.0
// inject PID CALL [ARGUMENT...]: makes the main thread of a running process execute one system call, and
// prints the result: a number, or a negative error number. An argument is a number, or "s:" and a string.
// The thread then continues.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define SYSCALL_INSTRUCTION 0x050f
#define PAGE		    4096

static pid_t pid;
static struct user_regs_struct saved;
static int kept[16], signals; // those that the thread has not received

static void demand(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(1);
}

// Waits until the thread stops. Returns 0, or the signal that the thread is about to receive.
static int wait_for_stop(void)
{
	int status;

	demand(waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status), "waiting for a stop");
	return status >> 16 || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
}

// Resumes the thread until it stops for another reason than a signal. A signal is kept for later: Go's runtime sends one
// to a thread that holds a processor for too long, which a stopped thread does, and sends no second one before the first
// has arrived. Returns the number of signals.
static int resume(int how)
{
	int n = 0;

	for (;;) {
		int signal;

		if (how)
			demand(!ptrace(how, pid, 0, 0), "resuming");
		signal = wait_for_stop();
		if (!signal)
			return n;
		demand(signals < (int)(sizeof(kept) / sizeof(*kept)), "too many signals");
		kept[signals++] = signal;
		n++;
		if (!how)
			how = PTRACE_CONT;
	}
}

// Sends the kept signals again, and lets the thread go.
static void let_go(void)
{
	while (signals)
		demand(!syscall(SYS_tgkill, pid, pid, kept[--signals]), "sending a kept signal");
	demand(!ptrace(PTRACE_DETACH, pid, 0, 0), "letting go");
}

// Stops the thread within a waiting system call. The instruction before its address is then a syscall.
static void stop_in_call(void)
{
	for (int i = 0; i < 2000; i++) {
		demand(!ptrace(PTRACE_SEIZE, pid, 0, 0), "seizing");
		demand(!ptrace(PTRACE_INTERRUPT, pid, 0, 0), "interrupting");
		resume(0);
		demand(!ptrace(PTRACE_GETREGS, pid, 0, &saved), "reading registers");
		errno = 0;
		if ((long)saved.orig_rax >= 0 &&
		    (ptrace(PTRACE_PEEKTEXT, pid, saved.rip - 2, 0) & 0xffff) ==
			    SYSCALL_INSTRUCTION &&
		    !errno)
			return;
		let_go();
		usleep(1000);
	}
	demand(0, "the thread never waits in a system call");
}

static long call(long nr, const long *a)
{
	struct user_regs_struct regs = saved;

	regs.rip = saved.rip - 2;
	regs.rax = nr;
	regs.orig_rax = -1; // prevents a restart of the interrupted call before this one
	regs.rdi = a[0];
	regs.rsi = a[1];
	regs.rdx = a[2];
	regs.r10 = a[3];
	regs.r8 = a[4];
	regs.r9 = a[5];
	// A signal stops the thread before the step, which is then done again.
	demand(!ptrace(PTRACE_SETREGS, pid, 0, &regs), "writing registers");
	resume(PTRACE_SINGLESTEP);
	demand(!ptrace(PTRACE_GETREGS, pid, 0, &regs), "reading registers");
	demand(regs.rip == saved.rip, "executing the system call");
	return regs.rax;
}

static void put(long to, const char *text)
{
	long word;

	for (size_t done = 0; done <= strlen(text); done += sizeof(word)) {
		word = 0;
		strncpy((char *)&word, text + done, sizeof(word));
		demand(!ptrace(PTRACE_POKEDATA, pid, to + done, word), "writing a string");
	}
}

int main(int argc, char **argv)
{
	long a[6] = {0},
	     map[6] = {0, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0};
	long page, unmap[6] = {0, PAGE}, used = 0, result;

	demand(argc >= 3 && argc <= 9, "wrong arguments");
	pid = atoi(argv[1]);
	stop_in_call();
	page = call(SYS_mmap, map);
	demand(page > 0, "mapping a page");
	for (int i = 3; i < argc; i++) {
		if (strncmp(argv[i], "s:", 2)) {
			a[i - 3] = strtol(argv[i], 0, 0);
			continue;
		}
		demand(used + strlen(argv[i]) < PAGE - sizeof(long), "strings too long");
		put(page + used, argv[i] + 2);
		a[i - 3] = page + used;
		used += (strlen(argv[i]) + sizeof(long)) & ~(sizeof(long) - 1);
	}
	result = call(atol(argv[2]), a);
	unmap[0] = page;
	call(SYS_munmap, unmap);
	demand(!ptrace(PTRACE_SETREGS, pid, 0, &saved), "writing registers back");
	let_go();
	printf("%ld\n", result);
	return 0;
}
