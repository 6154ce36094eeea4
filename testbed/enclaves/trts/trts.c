// SPDX-License-Identifier: Apache-2.0
// The trusted runtime: exceptions, the address of the heap, and the functions that the compiler calls.
#include "trts.h"

struct exceptions exceptions;

static uint64_t thread_data(int offset)
{
	uint64_t value;

	asm("mov %%gs:(%1), %0" : "=r"(value) : "r"((uint64_t)offset));
	return value;
}

void *heap(void)
{
	return (void *)thread_data(TD_HEAP);
}

size_t heap_size(void)
{
	return thread_data(TD_HEAP_SIZE);
}

size_t dynamic_size(void)
{
	return thread_data(TD_DYNAMIC_SIZE);
}

// CPUID and RDTSC raise #UD in an enclave. The handler emulates them with invented values; a real handler
// requests the values from outside. UD2 is skipped.
long enclave_exception(struct gpr *gpr)
{
	static uint64_t clock;
	uint16_t code = *(uint16_t *)gpr->ip;

	if ((gpr->exitinfo & 0x800000ff) != 0x80000006) {
		exceptions.other++;
		return 1;
	}
	switch (code) {
	case 0xa20f: // CPUID
		exceptions.cpuid++;
		gpr->bx = gpr->cx = gpr->dx = gpr->ax;
		break;
	case 0x310f: // RDTSC
		exceptions.rdtsc++;
		clock += 1000;
		gpr->ax = (uint32_t)clock;
		gpr->dx = clock >> 32;
		break;
	case 0x0b0f: // UD2
		exceptions.ud2++;
		break;
	default:
		exceptions.other++;
		return 1;
	}
	gpr->ip += 2;
	return 0;
}

// EACCEPT of a pending, writable page; SDM "EACCEPT".
long accept_page(void *page)
{
	struct {
		uint64_t flags, reserved[7];
	} __attribute__((aligned(64))) secinfo = {.flags = 0x20b}; // REG, PENDING, W, R
	long ret = 5;

	asm volatile(".byte 0x0f, 0x01, 0xd7"
		     : "+a"(ret)
		     : "b"(&secinfo), "c"(page)
		     : "memory", "cc");
	return ret;
}

void *memcpy(void *to, const void *from, size_t n)
{
	void *start = to;

	asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n)::"memory");
	return start;
}

void *memset(void *to, int byte, size_t n)
{
	void *start = to;

	asm volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(byte) : "memory");
	return start;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const uint8_t *x = a, *y = b;

	for (; n; n--, x++, y++)
		if (*x != *y)
			return *x < *y ? -1 : 1;
	return 0;
}
