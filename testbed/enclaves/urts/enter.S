/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Calls the vDSO function with R12 to R15 saved: an AEX clears them. */
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
	.section .note.GNU-stack, "", @progbits
