/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Types that the sampling program and its user side share. */
#ifndef TEESCOPE_PROFILING_H
#define TEESCOPE_PROFILING_H

#include "kernel.h"
#include "layout.h"

enum limits {
	FRAMES = 127,	 /* of a stack: the kernel's own limit (kernel.perf_event_max_stack) */
	COMM = 16,	 /* bytes of a name */
	GENERATIONS = 2, /* one is counted into while the other is read */
	TALLY_ROW = 8,	 /* entries for the tallies of a CPU: one cache line */
	IGNORED =
		16384, /* processes that are not sampled; a forgotten one is sampled, and ignored again */
	BEGUN = 16384, /* threads in a sampled call or wait */
	TABLES_SEEN = 256,
	MAPPINGS = 128,	       /* of code of a process that is unwound */
	UNWOUND = 1024,	       /* processes that are unwound */
	COMPAT = 0x10000,      /* a call of a 32-bit program, which has other numbers */
	USERS_ROW = 4096,      /* entries of an answer about the processes that map a file */
	USERS_STEPS = 1 << 15, /* through its mappings, of which each takes two */
};

/* The entries of an answer about the processes that map a file. */
enum users_entry {
	USERS_ADDRESS, /* the question: where the file is mapped */
	USERS_ERROR,   /* one of enum users_error, or below 0 one of the kernel */
	USERS_N,
	USERS_FIRST, /* the process IDs follow */
};

/* Why the processes that map a file are not known. */
enum users_error {
	USERS_CHANGED = 1, /* the mappings changed while they were read */
	USERS_MANY,	   /* there are too many */
	USERS_UNKNOWN,	   /* this kernel does not report whose a mapping is */
};

/*
 * A stack, by its hash. The process is part of the key of a user stack. Otherwise a program could choose the addresses on its
 * stack such that the stack has the hash of another program's stack.
 */
struct stack_key {
	u64 hash;
	u32 tgid;   /* 0 for a kernel stack */
	u32 frames; /* the rest of the stack's addresses are undefined */
};

struct stack {
	u64 address[FRAMES]; /* the innermost first */
};

/* The key of samples that are counted together. */
struct sample_key {
	u64 user;   /* hash of the stack; undefined without frames */
	u64 kernel; /* the same */
	u64 start;  /* of the process, nanoseconds after the start of the machine */
	u64 image;  /* changes when the process executes another program */
	u64 tcs;    /* control structure of the enclave that the thread was in, or 0 */
	u32 tgid;
	u32 tid;
	u32 call; /* 1 + number of the system call, COMPAT, or 0 */
	u16 user_frames;
	u16 kernel_frames;
	u8 in_kernel;  /* the thread ran kernel code */
	u8 descendant; /* of the process that was named */
	u8 kthread;    /* a thread of the kernel */
	u8 stack_lost; /* there was no room for one of the stacks */
	u8 preempted;  /* the thread could have run and did not get a CPU */
	u8 for_disk;   /* the thread waits for a block device */
	u8 cause;      /* 1 + enum cause of an AEX, or 0 */
	u8 unused[5];
	u8 thread[COMM];
	u8 process[COMM]; /* name of its first thread */
};

struct sample_count {
	u64 samples;
	u64 events; /* of the counter that samples: nanoseconds, or cycles; nanoseconds that a call or a wait took */
};

/* A process that is not sampled. */
struct process_key {
	u64 start;
	u64 image;
	u32 tgid;
	u32 unused;
};

/* A table of OCALLs that a process has passed to an ECALL. */
struct table_key {
	u64 start;
	u64 image;
	u64 address;
	u32 tgid;
	u32 unused;
};

/* A mapping of code. */
struct code {
	u64 start;
	u64 end;
	u64 bias;  /* of an address in the process, compared with the one in the file */
	u32 first; /* of its rows */
	u32 rows;
};

/* The code of a process, in ascending order. */
struct codes {
	u32 mappings;
	u32 unused;
	struct code code[MAPPINGS];
};

/* How the stack pointer of a caller (the CFA) is found. */
enum kind {
	NONE,	/* unknown */
	BY_SP,	/* the stack pointer and an offset */
	BY_BP,	/* the frame pointer and an offset */
	PLT,	/* a stub of the linker, which has pushed a word or not yet */
	SIGNAL, /* the kernel's frame of a signal */
	END,	/* nothing called this function */
};

enum tally {
	TAKEN,	      /* samples of threads */
	IDLE,	      /* samples of the idle thread, which are not counted further */
	LOST_SAMPLES, /* there was no room for them */
	LOST_STACKS,  /* counted without a stack, because there was no room for it */
	BEGAN,	      /* calls and waits whose beginning was stored */
	ENDED,	      /* of these, those that have ended */
	TALLIES,
};

/* The meaning of the cookie of a probed function. */
enum probed {
	FUNCTION, /* the function is sampled */
	TABLE,	  /* its third argument is a table of OCALLs */
};

GO_TYPE(profiling, struct stack_key, stackKey);
GO_TYPE(profiling, struct stack, stack);
GO_TYPE(profiling, struct sample_key, sampleKey);
GO_TYPE(profiling, struct sample_count, sampleCount);
GO_TYPE(profiling, struct process_key, processKey);
GO_TYPE(profiling, struct table_key, tableKey);
GO_VALUES(profiling, enum limits, max);
GO_TYPE(profiling, struct code, code);
GO_TYPE(profiling, struct codes, codes);
GO_VALUES(profiling, enum probed, probed);
GO_VALUES(profiling, enum tally, tally);
GO_VALUES(profiling, enum users_entry, );
GO_VALUES(profiling, enum users_error, );

#endif
