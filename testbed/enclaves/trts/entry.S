/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The enclave's side of EENTER and EEXIT, in the manner of the SDK's trts_pic.S. */
#include "layout.h"

#define EEXIT 4
#define ENCLU .byte 0x0f, 0x01, 0xd7

	.text
	/* RAX is CSSA, RCX the address after EENTER, RDI the command, RSI its argument. */
	.globl enclave_entry
	.hidden enclave_entry
	.type enclave_entry, @function
enclave_entry:
	cld
	test	%rax, %rax
	jnz	exception
	mov	%rcx, %gs:TD_EXIT
	cmp	$ECMD_ORET, %rdi
	je	oret
	mov	%gs:TD_STACK, %rsp
	xor	%ebp, %ebp
	call	enclave_ecall		/* long enclave_ecall(long index, void *ms) */
	mov	%rax, %rsi
	mov	$OCMD_ERET, %rdi
	mov	%gs:TD_SSA_GPR, %rdx
	mov	%gs:TD_EXIT, %rbx

	/*
	 * RDX is the GPR area of the frame that EENTER or ERESUME filled. RBX is the target. RDI and RSI are
	 * passed outside.
	 */
leave:
	mov	GPR_URSP(%rdx), %rsp
	mov	GPR_URBP(%rdx), %rbp
	xor	%edx, %edx
	xor	%r8d, %r8d
	xor	%r9d, %r9d
	xor	%r10d, %r10d
	xor	%r11d, %r11d
	mov	$EEXIT, %eax
	ENCLU

	/* long ocall(long index, void *ms) */
	.globl ocall
	.hidden ocall
	.type ocall, @function
ocall:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rsp, %gs:TD_OCALL_SP
	mov	%gs:TD_SSA_GPR, %rdx
	mov	%gs:TD_EXIT, %rbx
	jmp	leave
oret:
	mov	%gs:TD_OCALL_SP, %rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	mov	%rsi, %rax
	ret

	/*
	 * The thread was interrupted by an exception. Its state is in frame 0; frame 1 is for the handler. The
	 * handler may have been entered from another place than the thread, and returns to that place.
	 */
exception:
	mov	%gs:TD_EXC_STACK, %rsp
	mov	%rcx, %rbx		/* callee-saved */
	mov	%gs:TD_SSA_GPR, %rdi
	call	enclave_exception	/* long enclave_exception(struct gpr *) */
	mov	%rax, %rsi
	mov	$OCMD_ERET, %rdi
	mov	%gs:TD_SSA_GPR, %rdx
	add	$4096, %rdx
	jmp	leave

	.section .note.GNU-stack, "", @progbits
