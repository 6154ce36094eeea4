// SPDX-License-Identifier: Apache-2.0
// Stands in for libcuda: functions with its exported names and arguments. A copy takes a millisecond or more.
#include <stddef.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default"), noinline))

static void block(void)
{
	struct timespec moment = {0, 1000000};

	nanosleep(&moment, NULL);
}

EXPORTED int cuInit(unsigned int flags)
{
	return flags ? 802 : 0; /* CUDA_ERROR_SYSTEM_NOT_READY */
}

EXPORTED int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes)
{
	block();
	return !to || !from || !bytes;
}

EXPORTED int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes)
{
	block();
	return !to || !from || !bytes;
}

EXPORTED int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes,
				  void *stream)
{
	return !to || !from || !bytes || stream;
}

EXPORTED int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *stream)
{
	return !to || !from || !bytes || stream;
}

EXPORTED int cuLaunchKernel(void *f, unsigned int x, unsigned int y, unsigned int z)
{
	return !f || !x || !y || !z;
}

EXPORTED int cuGraphLaunch(void *graph, void *stream)
{
	return !graph || stream;
}

EXPORTED int cuStreamSynchronize(void *stream)
{
	block();
	return stream != NULL;
}

EXPORTED int cuCtxSynchronize(void)
{
	block();
	return 0;
}
