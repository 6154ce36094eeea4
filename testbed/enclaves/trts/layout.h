/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The interface between the two halves of the runtime. Also read by the assembler. */
#ifndef LAYOUT_H
#define LAYOUT_H

/* Commands in RDI at EENTER, and reasons in RDI at EEXIT. Other values are the index of an ECALL or OCALL. */
#define ECMD_ORET   -2
#define ECMD_EXCEPT -3
#define OCMD_ERET   -1

/* Pages of a thread, after its stack: TCS, two SSA frames, its data. */
#define THREAD_TCS   0
#define THREAD_SSA   1
#define THREAD_DATA  3
#define THREAD_PAGES 4
#define SSA_FRAMES   2

/* The thread's data page, at GS. */
#define TD_STACK	0  /* top of its stack */
#define TD_SSA_GPR	8  /* the GPR area of SSA frame 0 */
#define TD_EXIT		16 /* target of EEXIT */
#define TD_OCALL_SP	24 /* its stack during an OCALL */
#define TD_EXC_STACK	32 /* top of the exception handler's stack */
#define TD_HEAP		40
#define TD_HEAP_SIZE	48
#define TD_DYNAMIC_SIZE 56

/* The GPR area of an SSA frame; SDM "GPRSGX Region". */
#define GPR_SIZE 184
#define GPR_URSP 144
#define GPR_URBP 152

#endif
