// SPDX-License-Identifier: Apache-2.0
/* Functions with names and data between them, so that the assembler writes mapping symbols ($x, $d). */
__attribute__((noinline)) long spin(long n)
{
	volatile long sum = 0;

	for (long i = 0; i < n; i++)
		sum += i;
	return sum;
}
__attribute__((noinline)) long choose(long n)
{
	switch (n) {
	case 0: return spin(1);
	case 1: return spin(20);
	case 2: return spin(300) + 1;
	case 3: return spin(4000) + 2;
	case 4: return spin(5) * 3;
	case 5: return spin(6) - 7;
	}
	return 0;
}
__asm__(".text\nconstants: .word 0x12345678, 0x9abcdef0\n");
void _start(void)
{
	for (long i = 0;; i++)
		choose(i % 7);
}
