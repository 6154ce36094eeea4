// SPDX-License-Identifier: Apache-2.0
/* A function for each kind of first instruction. The names are those of OCALLs, as in Gramine's loader. Each
 * line of input is how often to call the functions that can be called. The answer is how many of them take a
 * probe. */
#include <stdio.h>

#ifdef AS_LOADER
#define NAME(kind) "sgx_ocall_" #kind
#else
#define NAME(kind) #kind
#endif

#define SITE(kind, code)                                                                           \
	void kind(void) asm(NAME(kind));                                                           \
	asm(".text\n.globl " NAME(kind) "\n.type " NAME(kind) ", @function\n" NAME(                \
		kind) ": " code "\nret\n.size " NAME(kind) ", .-" NAME(kind));

#define SAFE(DO)                                                                                   \
	DO(cheap_push, "push %rbp\npop %rbp")                                                      \
	DO(cheap_push_r12, "push %r12\npop %r12")                                                  \
	DO(cheap_endbr_push, "endbr64\npush %rbx\npop %rbx")                                       \
	DO(cheap_nop, "nop")                                                                       \
	DO(cheap_jump, "jmp 1f\n1:")                                                               \
	DO(cheap_call, "call 1f\njmp 2f\n1: ret\n2:")                                              \
	DO(slow_sub, "sub $24, %rsp\nadd $24, %rsp")                                               \
	DO(slow_mov, "mov %rdi, %rax")                                                             \
	DO(slow_endbr_mov, "endbr64\nmov %rdi, %rax")                                              \
	DO(slow_lea, "lea 1f(%rip), %rdx\n1:")                                                     \
	DO(slow_load, "mov 1f(%rip), %rax\n1:")                                                    \
	DO(slow_xor, "xor %eax, %eax")                                                             \
	DO(slow_test, "test %rdi, %rdi")                                                           \
	DO(slow_return, "ret")                                                                     \
	DO(slow_push_immediate, "push $1\npop %rax")                                               \
	DO(slow_string, "mov $0, %ecx\nrep stosb")

#define UNSAFE(DO)                                                                                 \
	DO(refused_lock, "lock incq (%rsp)")                                                       \
	DO(refused_lock_gs, "lock incq %gs:0x28")                                                  \
	DO(refused_endbr_lock, "endbr64\nlock incq (%rsp)")                                        \
	DO(refused_gs, "mov %gs:0, %rax")                                                          \
	DO(refused_fs, "mov %fs:0x28, %rax")                                                       \
	DO(refused_enclu, ".byte 0x0f, 0x01, 0xd7")                                                \
	DO(refused_syscall, "syscall")                                                             \
	DO(refused_breakpoint, "int3")                                                             \
	DO(refused_undefined, "ud2")                                                               \
	DO(refused_halt, "hlt")                                                                    \
	DO(refused_nonsense, ".byte 0x06")

SAFE(SITE)
UNSAFE(SITE)

#ifdef AS_LOADER
asm(".text\nsgx_ecall: push %rbp\nlock incq %gs:0x28\nlock incq %gs:0x30\nlock incq %gs:0x38\nret\n"
    ".globl sgx_ecall\n.type sgx_ecall, @function\n.size sgx_ecall, .-sgx_ecall");
#endif

int main(void)
{
	static void (*const safe[])(void) = {
#define POINTER(kind, code) kind,
		SAFE(POINTER)};
	int number, n = sizeof(safe) / sizeof(*safe);

	while (scanf("%d", &number) == 1) {
		for (int i = 0; i < number; i++)
			for (int k = 0; k < n; k++)
				safe[k]();
		printf("%d\n", n);
		fflush(stdout);
	}
	return 0;
}
