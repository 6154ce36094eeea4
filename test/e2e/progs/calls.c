// SPDX-License-Identifier: Apache-2.0
// Makes a known sequence of system calls, the same in each run and under a tracer. SIGCHLD is blocked, so
// that no call is interrupted and restarted. "calls held" first reads a byte, and finally waits for the end
// of its input.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void child(int n)
{
	for (int i = 0; i < 100 * n; i++)
		syscall(SYS_getpgid, 0);
	_exit(0);
}

int main(int argc, char **argv)
{
	int held = argc > 1 && argv[1][0] == 'h';
	char buf[64] = {0};
	struct timespec moment = {0, 1000000};
	int ends[2], zero, status;
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, 0);

	if (held && read(0, buf, 1) != 1)
		return 1;
	for (int i = 0; i < 10000; i++)
		syscall(SYS_getppid);
	if (pipe(ends))
		return 1;
	for (int i = 0; i < 2500; i++)
		if (write(ends[1], buf, sizeof buf) != sizeof buf ||
		    read(ends[0], buf, sizeof buf) < 0)
			return 1;
	for (int i = 0; i < 50; i++) {
		zero = open("/dev/zero", O_RDONLY);
		if (zero < 0 || pread(zero, buf, 8, 0) != 8)
			return 1;
		close(zero);
		open("/nonexistent", O_RDONLY);
	}
	for (int i = 0; i < 20; i++) {
		void *page = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		munmap(page, 4096);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, 0);
		sched_yield();
	}
	syscall(999); // an unknown number, which is counted too
	for (int n = 1; n <= 7; n++) {
		pid_t pid = fork();

		if (pid == 0)
			child(n);
		if (waitpid(pid, &status, 0) != pid)
			return 1;
	}
	if (held && (write(1, "done\n", 5) != 5 || read(0, buf, 1) < 0))
		return 1;
	return 0;
}
