// SPDX-License-Identifier: Apache-2.0
// Calls libcuda known numbers of times. It first reads a byte, and finally waits for the end of its input.
#include <stddef.h>
#include <unistd.h>

int cuInit(unsigned int flags);
int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes);
int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream);
int cuLaunchKernel(void *f, unsigned int x, unsigned int y, unsigned int z);
int cuGraphLaunch(void *graph, void *stream);
int cuStreamSynchronize(void *stream);
int cuCtxSynchronize(void);

int main(void)
{
	char byte;
	int i, bad = 0;

	if (read(0, &byte, 1) != 1)
		return 1;
	bad |= cuInit(0);
	bad |= cuInit(1) != 802;
	for (i = 1; i <= 10; i++)
		bad |= cuMemcpyHtoD_v2(1, &byte, 1000 * i);
	for (i = 1; i <= 5; i++)
		bad |= cuMemcpyDtoH_v2(&byte, 1, 1 << 20);
	for (i = 1; i <= 100; i++)
		bad |= cuMemcpyHtoDAsync_v2(1, &byte, 7, NULL);
	for (i = 1; i <= 3; i++)
		bad |= cuMemcpyDtoHAsync_v2(&byte, 1, 5UL << 30, NULL);
	for (i = 0; i < 40; i++)
		bad |= cuLaunchKernel(&byte, 1, 1, 1);
	for (i = 0; i < 4; i++)
		bad |= cuGraphLaunch(&byte, NULL);
	for (i = 0; i < 6; i++)
		bad |= cuStreamSynchronize(NULL);
	for (i = 0; i < 2; i++)
		bad |= cuCtxSynchronize();
	if (bad || write(1, "done\n", 5) != 5)
		return 1;
	return read(0, &byte, 1) != 0;
}
