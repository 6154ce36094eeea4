// SPDX-License-Identifier: Apache-2.0
// Builds an enclave with the ioctls of /dev/sgx_enclave: image, heap, then for each thread a stack, TCS,
// SSA frames and a data page.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <asm/sgx.h>
#include "urts.h"

// SECINFO flags, SDM "Security Information (SECINFO)".
enum { SI_R = 1, SI_W = 2, SI_X = 4, SI_TCS = 0x100, SI_REG = 0x200 };
#define ATTR_DEBUG     2
#define ATTR_MODE64BIT 4
#define XFRM_LEGACY    3

struct secs {
	uint64_t size, base;
	uint32_t ssa_frame_size, miscselect;
	uint8_t reserved1[24];
	uint64_t attributes, xfrm;
	uint8_t reserved2[4024];
} __attribute__((packed, aligned(4096)));

struct tcs {
	uint64_t state, flags, ossa;
	uint32_t cssa, nssa;
	uint64_t oentry, aep, ofsbase, ogsbase;
	uint32_t fslimit, gslimit;
	uint8_t reserved[4024];
} __attribute__((packed, aligned(4096)));

struct secinfo {
	uint64_t flags;
	uint8_t reserved[56];
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct secs) == 4096 && sizeof(struct tcs) == 4096, "SDM layouts");

// Adds pages at an offset. A signal stops the ioctl early; count is the number of bytes added by then.
static bool add(struct enclave *e, uint64_t offset, const void *from, uint64_t pages,
		uint64_t flags, bool measure)
{
	struct secinfo si = {.flags = flags};
	struct sgx_enclave_add_pages a = {
		.src = (uint64_t)from,
		.offset = offset,
		.length = pages * PAGE,
		.secinfo = (uint64_t)&si,
		.flags = measure ? SGX_PAGE_MEASURE : 0,
	};

	while (a.length) {
		if (ioctl(e->fd, SGX_IOC_ENCLAVE_ADD_PAGES, &a) && errno != EINTR)
			return false;
		a.src += a.count;
		a.offset += a.count;
		a.length -= a.count;
		a.count = 0;
	}
	return true;
}

static bool map(struct enclave *e, uint64_t offset, uint64_t pages, int prot)
{
	return !pages || mmap((void *)(e->base + offset), pages * PAGE, prot,
			      MAP_SHARED | MAP_FIXED, e->fd, 0) != MAP_FAILED;
}

// Adds zeroed pages from one buffer.
static bool add_zeroes(struct enclave *e, uint64_t offset, uint64_t pages)
{
	static uint8_t zeroes[64 * PAGE] __attribute__((aligned(4096)));

	for (uint64_t n; pages; pages -= n, offset += n * PAGE) {
		n = pages < 64 ? pages : 64;
		if (!add(e, offset, zeroes, n, SI_REG | SI_R | SI_W, false))
			return false;
	}
	return true;
}

// Offsets of the parts of an enclave, in bytes from the base.
struct plan {
	uint64_t heap, dynamic, threads, thread_size, end;
};

static struct plan make_plan(const struct image *image, const struct testbed_config *c)
{
	struct plan p;

	p.heap = image->pages * PAGE;
	p.dynamic = p.heap + c->heap_pages * PAGE;
	p.threads = p.dynamic + c->dynamic_pages * PAGE;
	p.thread_size = (c->stack_pages + THREAD_PAGES) * PAGE;
	p.end = p.threads + c->threads * p.thread_size;
	return p;
}

static bool add_thread(struct enclave *e, const struct image *image, const struct testbed_config *c,
		       const struct plan *p, size_t i)
{
	uint64_t stack = p->threads + i * p->thread_size, tcs = stack + c->stack_pages * PAGE;
	uint64_t *data = calloc(1, 2 * PAGE),
		 *page = (void *)(((uint64_t)data + PAGE - 1) & ~(PAGE - 1));
	uint64_t ssa = tcs + THREAD_SSA * PAGE, at = tcs + THREAD_DATA * PAGE;
	struct tcs t = {
		.ossa = ssa,
		.nssa = SSA_FRAMES,
		.oentry = image->entry,
		.ofsbase = at,
		.ogsbase = at,
		.fslimit = PAGE - 1,
		.gslimit = PAGE - 1,
	};
	bool ok;

	if (!data)
		return false;
	page[TD_STACK / 8] = e->base + tcs;
	page[TD_SSA_GPR / 8] = e->base + ssa + PAGE - GPR_SIZE;
	page[TD_EXC_STACK / 8] = e->base + at + PAGE;
	page[TD_HEAP / 8] = e->base + p->heap;
	page[TD_HEAP_SIZE / 8] = c->heap_pages * PAGE;
	page[TD_DYNAMIC_SIZE / 8] = c->dynamic_pages * PAGE;
	ok = add_zeroes(e, stack, c->stack_pages) && add(e, tcs, &t, 1, SI_TCS, true) &&
	     add_zeroes(e, ssa, SSA_FRAMES) && add(e, at, page, 1, SI_REG | SI_R | SI_W, true);
	free(data);
	e->tcs[i] = e->base + tcs;
	return ok;
}

static bool create(struct enclave *e, uint64_t end, bool debug)
{
	struct secs secs = {
		.ssa_frame_size = 1,
		.attributes = ATTR_MODE64BIT | (debug ? ATTR_DEBUG : 0),
		.xfrm = XFRM_LEGACY,
	};
	struct sgx_enclave_create c = {.src = (uint64_t)&secs};
	char *at;

	for (e->size = 2 * PAGE; e->size < end;)
		e->size *= 2;
	// Twice the size contains an aligned range. The rest is unmapped.
	at = mmap(NULL, 2 * e->size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return false;
	e->base = ((uint64_t)at + e->size - 1) & ~(e->size - 1);
	munmap(at, e->base - (uint64_t)at);
	munmap((void *)(e->base + e->size), (uint64_t)at + e->size - e->base);
	secs.size = e->size;
	secs.base = e->base;
	return !ioctl(e->fd, SGX_IOC_ENCLAVE_CREATE, &c);
}

static bool add_image(struct enclave *e, const struct image *image)
{
	for (int i = 0; i < image->count; i++) {
		const struct segment *s = &image->segments[i];

		if (!add(e, s->offset, s->data, s->pages, SI_REG | s->permissions, true))
			return false;
	}
	return true;
}

static bool map_all(struct enclave *e, const struct image *image, const struct plan *p)
{
	for (int i = 0; i < image->count; i++) {
		const struct segment *s = &image->segments[i];
		int prot = (s->permissions & SI_R ? PROT_READ : 0) |
			   (s->permissions & SI_W ? PROT_WRITE : 0) |
			   (s->permissions & SI_X ? PROT_EXEC : 0);

		if (!map(e, s->offset, s->pages, prot))
			return false;
	}
	return map(e, p->heap, (p->end - p->heap) / PAGE, PROT_READ | PROT_WRITE);
}

// EINIT, with a SIGSTRUCT whose masks accept every value. The testbed accepts every signer.
static bool init(struct enclave *e)
{
	static const uint8_t sigstruct[PAGE] __attribute__((aligned(4096)));
	struct sgx_enclave_init i = {.sigstruct = (uint64_t)sigstruct};
	int ret;

	do
		ret = ioctl(e->fd, SGX_IOC_ENCLAVE_INIT, &i);
	while (ret && errno == EINTR);
	return !ret;
}

static bool fill(struct enclave *e, const struct image *image, const struct testbed_config *c,
		 bool debug)
{
	struct plan p = make_plan(image, c);

	if (!create(e, p.end, debug) || !add_image(e, image) ||
	    !add_zeroes(e, p.heap, c->heap_pages))
		return false;
	for (size_t i = 0; i < c->threads; i++)
		if (!add_thread(e, image, c, &p, i))
			return false;
	return map_all(e, image, &p) && init(e);
}

sgx_status_t build_enclave(struct enclave *e, const char *file, bool debug,
			   const struct testbed_config *config)
{
	struct image image;
	sgx_status_t status = SGX_ERROR_NO_DEVICE;

	if (!image_load(&image, file))
		return SGX_ERROR_INVALID_ENCLAVE;
	e->threads = config->threads;
	e->tcs = calloc(e->threads, sizeof(*e->tcs));
	e->taken = calloc(e->threads, sizeof(*e->taken));
	e->fd = open("/dev/sgx_enclave", O_RDWR | O_CLOEXEC);
	if (e->tcs && e->taken && e->fd >= 0)
		status = fill(e, &image, config, debug) ? SGX_SUCCESS : SGX_ERROR_UNEXPECTED;
	if (status)
		perror("building an enclave");
	image_free(&image);
	return status;
}

void drop_enclave(struct enclave *e)
{
	if (e->base)
		munmap((void *)e->base, e->size);
	if (e->fd >= 0)
		close(e->fd);
	free(e->tcs);
	free(e->taken);
	e->base = 0;
	e->tcs = NULL;
	e->taken = NULL;
}
