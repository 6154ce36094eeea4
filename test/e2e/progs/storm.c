// SPDX-License-Identifier: Apache-2.0
// storm N CALLS WIDTH [PROGRAM]: runs N short processes, at most WIDTH at once. Each makes CALLS calls
// of getpgid and exits. With PROGRAM each first executes it as "PROGRAM CALLS".
// storm CALLS: acts as such a program.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void calls(int n)
{
	while (n-- > 0)
		syscall(SYS_getpgid, 0);
	_exit(0);
}

int main(int argc, char **argv)
{
	int n, width, running = 0, status;

	if (argc < 4)
		calls(argc > 1 ? atoi(argv[1]) : 0);
	n = atoi(argv[1]);
	width = atoi(argv[3]);
	for (int i = 0; i < n; i++) {
		if (running == width) {
			wait(&status);
			running--;
		}
		switch (fork()) {
		case -1:
			return 1;
		case 0:
			if (argc > 4) {
				execl(argv[4], argv[4], argv[2], (char *)0);
				_exit(1);
			}
			calls(atoi(argv[2]));
		}
		running++;
	}
	while (wait(&status) > 0)
		if (status)
			return 1;
	return 0;
}
