// SPDX-License-Identifier: Apache-2.0
// Finds and calls the kernel's __vdso_sgx_enter_enclave (arch/x86/include/uapi/asm/sgx.h).
#include <elf.h>
#include <string.h>
#include <sys/auxv.h>
#include <asm/sgx.h>
#include "urts.h"

vdso_sgx_enter_enclave_t vdso_enter_enclave;

// enter.S: saves the registers that an AEX clears and the vDSO function does not save.
int enter(unsigned long rdi, unsigned long rsi, unsigned long rdx, unsigned int function,
	  unsigned long r8, unsigned long r9, struct sgx_enclave_run *run);

int enter_own(long command, void *arg, uint64_t tcs, struct call *call);
unsigned int no_entry(void);

struct symbols {
	char *base;
	Elf64_Sym *table;
	char *names;
	uint32_t count;
};

static bool find_symbols(struct symbols *s)
{
	Elf64_Ehdr *header = (void *)s->base;
	Elf64_Phdr *program = (void *)(s->base + header->e_phoff);
	Elf64_Dyn *dynamic = NULL;

	for (int i = 0; i < header->e_phnum; i++)
		if (program[i].p_type == PT_DYNAMIC)
			dynamic = (void *)(s->base + program[i].p_offset);
	for (; dynamic && dynamic->d_tag; dynamic++) {
		char *at = s->base + dynamic->d_un.d_ptr;

		if (dynamic->d_tag == DT_SYMTAB)
			s->table = (void *)at;
		if (dynamic->d_tag == DT_STRTAB)
			s->names = at;
		if (dynamic->d_tag == DT_HASH)
			s->count = ((uint32_t *)at)[1];
	}
	// A vDSO with only a GNU hash does not contain the number of symbols. They end where the names begin.
	if (s->table && s->names && !s->count)
		s->count = ((char *)s->names - (char *)s->table) / sizeof(*s->table);
	return s->table && s->names;
}

bool vdso_find(void)
{
	struct symbols s = {.base = (char *)getauxval(AT_SYSINFO_EHDR)};

	if (vdso_enter_enclave)
		return true;
	if (!s.base || !find_symbols(&s))
		return false;
	for (uint32_t i = 0; i < s.count; i++)
		if (!strcmp(s.names + s.table[i].st_name, "__vdso_sgx_enter_enclave"))
			vdso_enter_enclave = (void *)(s.base + s.table[i].st_value);
	return vdso_enter_enclave;
}

static int on_exit_enclave(long rdi, long rsi, long rdx, long rsp, long r8, long r9,
			   struct sgx_enclave_run *run)
{
	struct call *call = (void *)run->user_data;

	(void)rdx, (void)rsp, (void)r8, (void)r9;
	call->reason = rdi;
	call->value = rsi;
	return 0;
}

int vdso_call(uint64_t tcs, unsigned int leaf, long command, void *arg, struct call *call)
{
	struct sgx_enclave_run run = {
		.tcs = tcs,
		.user_handler = (uint64_t)on_exit_enclave,
		.user_data = (uint64_t)call,
	};
	int ret = enter(command, (unsigned long)arg, 0, leaf, 0, 0, &run);

	call->leaf = run.function;
	call->vector = run.exception_vector;
	call->address = run.exception_addr;
	return ret;
}

// An exception inside ends the program: only the vDSO converts it into a return. The test of the constant shows that its code is
// intact while a debugger or tracer watches it.
int own_call(uint64_t tcs, long command, void *arg, struct call *call)
{
	call->leaf = EEXIT;
	return no_entry() == 0xd7010f ? enter_own(command, arg, tcs, call) : -1;
}
