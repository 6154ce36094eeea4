// SPDX-License-Identifier: Apache-2.0
/* A host of Open Enclave, with its library's functions linked into the program. Each line of input is a number
 * of ECALLs and of OCALLs in each. The answer has the program's own counts. */
#include <stdint.h>
#include <stdio.h>

enum { ECALL = 1, ERET = 2, OCALL = 3, FUNCTION = 2, HOST_FUNCTION = 0x8000 };

static long enters, ocalls;

static uint64_t arg1(uint64_t code, uint64_t function)
{
	return code << 48 | function << 32;
}

/* Some versions also call this for the return from an ECALL. */
int __attribute__((noipa)) __oe_dispatch_ocall(uint64_t first, uint64_t second, uint64_t *first_out,
					       uint64_t *second_out, void *tcs, void *enclave)
{
	(void)second, (void)first_out, (void)second_out, (void)tcs, (void)enclave;
	if (first >> 48 != OCALL)
		return 1;
	ocalls++;
	return 0;
}

void oe_enter(void *tcs, uint64_t n, uint64_t *out) asm("__morestack");
void __attribute__((noipa)) oe_enter(void *tcs, uint64_t n, uint64_t *out)
{
	enters++;
	for (uint64_t i = 0; i < n; i++)
		__oe_dispatch_ocall(arg1(OCALL, HOST_FUNCTION + i % 2), 0, out, out, tcs, NULL);
	__oe_dispatch_ocall(arg1(ERET, 0), 0, out, out, tcs, NULL);
}

int __attribute__((noipa)) oe_ecall(void *enclave, uint16_t function, uint64_t arg, uint64_t *out)
{
	(void)function;
	oe_enter(enclave, arg, out);
	return 0;
}

int main(void)
{
	long number, each;
	uint64_t out;

	while (scanf("%ld %ld", &number, &each) == 2) {
		enters = ocalls = 0;
		for (long i = 0; i < number; i++)
			oe_ecall(NULL, FUNCTION, each, &out);
		printf("%ld %ld\n", enters, ocalls);
		fflush(stdout);
	}
	return 0;
}
