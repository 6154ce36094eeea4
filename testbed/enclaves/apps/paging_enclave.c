// SPDX-License-Identifier: Apache-2.0
// Writes pages of the heap, and checks that they keep their content. A part of the heap may be added while
// the enclave runs (SGX2).
#include "../trts/trts.h"
#include "paging.h"

// The value at the start and at the end of a page.
static uint64_t mark(uint64_t page, uint64_t seed)
{
	return (page + 1) * 0x9e3779b97f4a7c15 ^ seed;
}

static long touch(struct touch *t, int write)
{
	uint64_t first = t->first, pages = t->pages, seed = t->seed, errors = 0;
	uint64_t have = (heap_size() + dynamic_size()) / 4096;

	if (first > have || pages > have - first)
		return 1;
	for (uint64_t i = first; i < first + pages; i++) {
		volatile uint64_t *page = (uint64_t *)heap() + i * 512;

		if (write)
			page[0] = page[511] = mark(i, seed);
		else
			errors += page[0] != mark(i, seed) || page[511] != mark(i, seed);
	}
	t->errors = errors;
	return 0;
}

// Pages after the heap are added when they are accepted.
static long accept(struct touch *t)
{
	uint64_t pages = dynamic_size() / 4096, accepted = 0;

	for (uint64_t i = 0; i < pages; i++)
		accepted += !accept_page((uint8_t *)heap() + heap_size() + i * 4096);
	t->pages = accepted;
	return accepted != pages;
}

long enclave_ecall(long index, void *ms)
{
	switch (index) {
	case ECALL_WRITE:
		return touch(ms, 1);
	case ECALL_CHECK:
		return touch(ms, 0);
	case ECALL_ACCEPT:
		return accept(ms);
	}
	return 1;
}
