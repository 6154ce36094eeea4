// SPDX-License-Identifier: Apache-2.0
// The enclave of the module's self-test.
#include "../trts/trts.h"
#include "selftest.h"

// Defined by the linker: the start of the image, and so of the enclave.
extern const uint8_t __ehdr_start __attribute__((visibility("hidden")));

static uint64_t counter;

static uint64_t mark(uint64_t address, uint64_t seed)
{
	return address ^ seed * 0x9e3779b97f4a7c15;
}

static uint64_t heap_pass(uint64_t seed, int write)
{
	uint64_t bad = 0, pages = heap_size() / 4096;

	for (uint64_t i = 0; i < pages; i++) {
		volatile uint64_t *page = (uint64_t *)heap() + i * 512;
		uint64_t want = mark((uint64_t)page, seed);

		if (write)
			page[0] = page[511] = want;
		else
			bad += page[0] != want || page[511] != want;
	}
	return bad;
}

static void bases(struct selftest *t)
{
	uint64_t fs, gs;

	asm("rdfsbase %0" : "=r"(fs));
	asm("rdgsbase %0" : "=r"(gs));
	t->value = fs;
	t->value2 = gs;
}

static void wait(struct selftest *t)
{
	volatile uint64_t *stop = (uint64_t *)t->address;

	for (t->value = 0; !*stop; t->value++)
		__builtin_ia32_pause();
}

// Fills two registers, waits, and reads them. An AEX in between must not change them.
static void sse(struct selftest *t)
{
	volatile uint64_t *stop = (uint64_t *)t->address;
	uint64_t a = t->seed, b = ~t->seed, c, d, n = 0;

	asm volatile("movq %3, %%xmm3\n\tmovq %4, %%xmm15\n"
		     "1:\tpause\n\tinc %2\n\tcmpq $0, (%5)\n\tje 1b\n\t"
		     "movq %%xmm3, %0\n\tmovq %%xmm15, %1"
		     : "=&r"(c), "=&r"(d), "+&r"(n)
		     : "r"(a), "r"(b), "r"(stop)
		     : "xmm3", "xmm15", "memory", "cc");
	t->value = n;
	t->value2 = c == a && d == b;
}

static void traps(struct selftest *t)
{
	struct exceptions before = exceptions;
	uint32_t a, b, c, d;

	asm volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0) : "memory");
	t->value = a == 7 && b == 7; // the handler's values, not the processor's
	asm volatile("rdtsc" : "=a"(a), "=d"(d)::"memory");
	asm volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(9), "c"(0) : "memory");
	t->value2 = (exceptions.cpuid - before.cpuid) * 100 +
		    (exceptions.rdtsc - before.rdtsc) * 10 + (exceptions.other - before.other);
}

static long enclu(long leaf, void *bx, void *cx, void *dx)
{
	asm volatile(".byte 0x0f, 0x01, 0xd7"
		     : "+a"(leaf)
		     : "b"(bx), "c"(cx), "d"(dx)
		     : "memory", "cc");
	return leaf;
}

static long keys(struct selftest *t)
{
	static uint8_t target[512] __attribute__((aligned(512)));
	static uint8_t data[128] __attribute__((aligned(128)));
	static uint8_t report[512] __attribute__((aligned(512)));
	static uint8_t request[512] __attribute__((aligned(512)));
	static uint8_t key[16] __attribute__((aligned(16)));

	memcpy(data, &t->seed, 8);
	enclu(0, target, data, report);	 // EREPORT without a target returns this enclave's identity
	memcpy(target, report + 64, 32); // MRENCLAVE
	memcpy(target + 32, report + 48, 16); // ATTRIBUTES
	memcpy(target + 52, report + 16, 4);  // MISCSELECT
	enclu(0, target, data, report);
	memcpy(t->report, report, sizeof(t->report));
	request[0] = 3;				// REPORT_KEY
	memcpy(request + 40, report + 384, 32); // KEYID
	if (enclu(1, request, key, 0))
		return 1;
	memcpy(t->key, key, sizeof(t->key));
	return 0;
}

// EACCEPT of the first page of the heap, in the state that seed gives.
static long modify(struct selftest *t)
{
	uint64_t secinfo[8] __attribute__((aligned(64))) = {t->seed};

	t->value = enclu(5, secinfo, heap(), 0);
	return 0;
}

long enclave_ecall(long index, void *ms)
{
	struct selftest *t = ms;

	switch (index) {
	case ECALL_COUNT:
		t->value = ++counter;
		return 0;
	case ECALL_FILL:
		t->value = heap_pass(t->seed, 1);
		return 0;
	case ECALL_VERIFY:
		t->value = heap_pass(t->seed, 0);
		return 0;
	case ECALL_HEAP:
		t->value = (uint64_t)heap() - (uint64_t)&__ehdr_start;
		return 0;
	case ECALL_BASES:
		bases(t);
		return 0;
	case ECALL_READ:
		t->value = *(volatile uint64_t *)t->address;
		return 0;
	case ECALL_WAIT:
		wait(t);
		return 0;
	case ECALL_SSE:
		sse(t);
		return 0;
	case ECALL_TRAPS:
		traps(t);
		return 0;
	case ECALL_KEYS:
		return keys(t);
	case ECALL_MODIFY:
		return modify(t);
	}
	return 1;
}
