// SPDX-License-Identifier: Apache-2.0
/* Generates a loop, runs it, and writes a perf map. Prints the address of the loop. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	/* mov ecx, 1<<28; loop: dec ecx; jnz loop; ret */
	static const unsigned char code[] = {0xb9, 0, 0, 0, 0x10, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
	void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	char name[64], end;
	FILE *map;

	if (at == MAP_FAILED)
		return 1;
	memcpy(at, code, sizeof(code));
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	if (argc < 2) {
		map = fopen(name, "w");
		fprintf(map, "%lx %zx generated loop\n", (unsigned long)at, sizeof(code));
		fclose(map);
	}
	printf("%lx %s\n", (unsigned long)at, argv[0]);
	fflush(stdout);
	for (;;) {
		((void (*)(void))at)();
		if (read(0, &end, 1) <= 0)
			break;
	}
	if (argc < 2)
		unlink(name);
	return 0;
}
