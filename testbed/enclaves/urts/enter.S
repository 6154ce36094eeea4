/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Two ways into an enclave. Both save R12 to R15, which an AEX clears. */
#define EENTER 2
#define ENCLU .byte 0x0f, 0x01, 0xd7

/* Calls the vDSO function. */
	.text
	.globl enter
	.hidden enter
	.type enter, @function
enter:
	push	%r15
	push	%r14
	push	%r13
	push	%r12
	push	%rbx
	pushq	0x30(%rsp)	/* run, the seventh argument */
	mov	vdso_enter_enclave@GOTPCREL(%rip), %rax
	call	*(%rax)
	add	$8, %rsp
	pop	%rbx
	pop	%r12
	pop	%r13
	pop	%r14
	pop	%r15
	ret
	.size enter, .-enter

	/*
	 * int enter_own(long command, void *arg, uint64_t tcs, struct call *call): enters as runtimes without the
	 * vDSO do. Leaves by EEXIT arrive behind the first ENCLU. AEXs arrive at the second one, with ERESUME in RAX.
	 */
	.globl enter_own
	.hidden enter_own
	.type enter_own, @function
enter_own:
	push	%rbp
	push	%rbx
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	push	%rcx
	mov	%rdx, %rbx
	lea	resume(%rip), %rcx
	mov	$EENTER, %eax
	ENCLU
	pop	%rcx
	mov	%rdi, (%rcx)	/* reason and value */
	mov	%rsi, 8(%rcx)
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbx
	pop	%rbp
	xor	%eax, %eax
	ret
	.size enter_own, .-enter_own

	.type resume, @function
resume:
	ENCLU
	.size resume, .-resume

	/* The same bytes that are no instruction: data, and the end of a constant. */
	.type no_code, @object
no_code:
	.byte	0x48, 0x8b, 0x0f, 0x01, 0xd7, 0xc3
	.size no_code, .-no_code
	.globl no_entry
	.hidden no_entry
	.type no_entry, @function
no_entry:
	mov	$0x00d7010f, %eax
	ret
	.size no_entry, .-no_entry
	.section .note.GNU-stack, "", @progbits
