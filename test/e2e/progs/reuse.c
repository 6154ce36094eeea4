// SPDX-License-Identifier: Apache-2.0
// reuse CALLS FIRST SECOND: runs "FIRST CALLS" and then "SECOND CALLS" in processes with the same
// process ID, and prints the ID. Requests the ID from the kernel (clone3 with set_tid).
#define _GNU_SOURCE
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t run(pid_t want, char *program, char *calls)
{
	struct clone_args args = {.exit_signal = SIGCHLD};
	pid_t pid;
	int status;

	if (want) {
		args.set_tid = (uintptr_t)&want;
		args.set_tid_size = 1;
	}
	pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid < 0) {
		perror("clone3");
		exit(1);
	}
	if (pid == 0) {
		execl(program, program, calls, (char *)0);
		_exit(1);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		exit(1);
	return pid;
}

int main(int argc, char **argv)
{
	pid_t pid;

	if (argc != 4)
		return 2;
	pid = run(0, argv[2], argv[1]);
	if (run(pid, argv[3], argv[1]) != pid)
		return 1;
	printf("%d\n", pid);
	return 0;
}
