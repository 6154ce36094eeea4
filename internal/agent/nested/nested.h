/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Types that the programs that time nested functions share with user space. */
#ifndef TEESCOPE_NESTED_H
#define TEESCOPE_NESTED_H

#include "kernel.h"
#include "layout.h"

enum limits {
	MAX_FUNCTIONS = 16, /* the root is function 0 */
	KINDS = 2, /* of instructions: the kernel emulates them or executes them in a single step */
	MAX_DEPTH = 16,	   /* calls of these functions within each other */
	THREADS = 4096,	   /* threads that have called the root */
	FRACTION_BITS = 3, /* each power of two has 8 buckets */
	BUCKETS = 336,	   /* the last one ends at 2^44 ns, which is 4.9 hours */
};

/* The times that the probes of a function add, in nanoseconds. A cookie has the function and, above it, the kind of its
 * instruction.
 */
struct cost {
	u64 inside; /* to the time of the call itself */
	u64 whole;  /* to that of each function around it */
};

/* The finished calls of a function within the root. */
struct function {
	u64 calls;
	u64 outermost; /* not within another call of the same function */
	u64 ns;	       /* of the outermost ones, without the cost of probes */
	u64 left_ns; /* of outermost ones that have not returned, up to the last event of their thread */
	u64 own_ns;	      /* of all these, without the calls within that have probes */
	u64 probes_ns;	      /* cost of probes that was subtracted from the outermost ones */
	u64 buckets[BUCKETS]; /* the outermost calls by their time */
	u64 parent_calls[MAX_FUNCTIONS]; /* the outermost calls by the next function further out */
	u64 parent_ns[MAX_FUNCTIONS];
};

/* An unfinished call. */
struct frame {
	u64 stack; /* the stack pointer at the entry, which points to the return address */
	u64 began;
	u64 inner_ns;  /* time of finished calls within, without the cost of probes */
	u64 probes_ns; /* cost of the probes of these */
	u64 function;
	u64 kind;
};

struct thread {
	u64 start; /* start and image show whether this thread still runs the same program */
	u64 image;
	u64 last; /* time of the last event */
	u64 depth;
	struct frame frames[MAX_DEPTH];
};

/* Calls that are not counted. */
struct lost {
	u64 stopped;  /* user space sets it to end the measurement */
	u64 deep;     /* within MAX_DEPTH others */
	u64 unwound;  /* left without a return: by longjmp, an exception or a change of the stack */
	u64 unpaired; /* a return without a known beginning */
};

GO_TYPE(nested, struct cost, cost);
GO_TYPE(nested, struct function, function);
GO_TYPE(nested, struct frame, frame);
GO_TYPE(nested, struct thread, thread);
GO_TYPE(nested, struct lost, lost);
GO_VALUES(nested, enum limits, );

#endif
