/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the programs that time nested functions share with user space. */
#ifndef TEESCOPE_NESTED_H
#define TEESCOPE_NESTED_H

#include "kernel.h"
#include "layout.h"

enum limits {
	MAX_FUNCTIONS = 16, /* the root is function 0 */
	MAX_DEPTH = 16,	    /* calls of these functions within each other */
	THREADS = 4096,	    /* threads that have called the root */
	FRACTION_BITS = 3,  /* each power of two has 8 buckets */
	BUCKETS = 336,	    /* the last one ends at 2^44 ns, which is 4.9 hours */
};

/* What the probes of a function add to a time, in nanoseconds. */
struct cost {
	u64 inside; /* to the time of the call itself */
	u64 whole;  /* to that of each function around it */
};

/* The finished calls of a function within the root. */
struct function {
	u64 calls;
	u64 outermost;	      /* not within another call of the same function */
	u64 ns;		      /* of the outermost ones, without the cost of probes */
	u64 own_ns;	      /* of all, without the calls within that have probes */
	u64 probes_ns;	      /* cost of probes that was subtracted from the outermost ones */
	u64 buckets[BUCKETS]; /* the outermost calls by their time */
	u64 parent_calls[MAX_FUNCTIONS]; /* the outermost calls by the next function further out */
	u64 parent_ns[MAX_FUNCTIONS];
};

/* Calls that are not in the figures. */
struct lost {
	u64 deep;     /* within MAX_DEPTH others */
	u64 unwound;  /* left without a return: by longjmp, an exception or a change of the stack */
	u64 unpaired; /* a return without a known begin */
};

GO_TYPE(nested, struct cost, cost);
GO_TYPE(nested, struct function, function);
GO_TYPE(nested, struct lost, lost);
GO_VALUES(nested, enum limits, );

#endif
