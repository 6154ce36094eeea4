// SPDX-License-Identifier: Apache-2.0
// A process that has mapped many libraries of a runtime: "mapper USER FILE..." maps each file, changes
// to the user, prints "ready" and waits.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	for (int i = 2; i < argc; i++) {
		int f = open(argv[i], O_RDONLY);

		if (f < 0 ||
		    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, f, 0) == MAP_FAILED) {
			perror(argv[i]);
			return 1;
		}
		close(f);
	}
	if (setuid(atoi(argv[1]))) {
		perror("mapper: changing the user");
		return 1;
	}
	printf("ready\n");
	fflush(stdout);
	pause();
	return 0;
}
