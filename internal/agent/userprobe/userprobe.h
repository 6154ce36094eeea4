/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Types that the programs of the user's own probes share with user space. */
#ifndef TEESCOPE_USERPROBE_H
#define TEESCOPE_USERPROBE_H

#include "kernel.h"
#include "layout.h"

enum limits {
	MAX_PROBES = 16,
	KEYS = 3,
	BUCKETS = 34,	     /* 33 with a bound, and one for larger values */
	STARTED = 8192,	     /* calls that are timed at once */
	MOST_RUN_NS = 20000, /* a longer run of a program includes an interrupt */
};

/* Numbers of groups that belong to the object. */
enum own_groups {
	GROUP_OTHER,  /* without a free number */
	GROUP_KERNEL, /* threads of the kernel */
	GROUP_IDLE,
	GROUP_FIRST,
};

/* Where a value comes from. */
enum origin {
	FROM_NOTHING,
	FROM_RECORD,   /* the record of a tracepoint */
	FROM_REGISTER, /* a register of the thread, by its offset in struct pt_regs */
	FROM_MEMORY,   /* memory of the process, at a register and a number */
	FROM_CONSTANT,
	FROM_CPU,
	FROM_COMM,     /* the name of the thread; as a key only */
	FROM_DURATION, /* nanoseconds since the function began; as a value only */
};

/* How a value is read. */
struct fetch {
	u32 origin;
	u32 offset; /* in the record, or of the register in struct pt_regs */
	u32 size;   /* bytes: 1, 2, 4 or 8 */
	u8 is_signed;
	u8 is_error; /* a negative result of a call stands for an error; others are 0 */
	u8 unused[2];
	s64 add; /* to the register, for memory; or the constant */
};

enum kind {
	COUNT_EVENTS,
	ADD_VALUES,
	HISTOGRAM,
};

/* Comparisons of a value with a constant. */
enum comparison {
	ALL, /* every event counts */
	EQUAL,
	UNEQUAL,
	LESS,
	LESS_OR_EQUAL,
	GREATER,
	GREATER_OR_EQUAL,
	HAS_BIT,
};

/* A series of a probe. */
struct series_key {
	u32 group;
	u16 probe;
	u16 folded; /* 1: the events of all series above the limit */
	u64 key[KEYS];
	u8 comm[16];
};

struct sum {
	u64 events;
	u64 sum;
};

struct distribution {
	u64 events;
	u64 sum;
	u64 buckets[BUCKETS];
};

/* Statistics of a probe on one CPU. */
struct tally {
	u64 events;   /* at which a program ran, also those that do not count */
	u64 folded;   /* counted in a series for those above the limit */
	u64 full;     /* lost: the map had no room */
	u64 negative; /* lost: the value was below zero */
	u64 unpaired; /* lost: the call had no known beginning */
	u64 unread;   /* lost: a value could not be read */
	u64 runs;     /* measured */
	u64 run_ns;
};

struct control {
	u64 metering; /* programs measure themselves */
};

GO_TYPE(userprobe, struct fetch, fetch);
GO_TYPE(userprobe, struct series_key, seriesKey);
GO_TYPE(userprobe, struct sum, sum);
GO_TYPE(userprobe, struct distribution, distribution);
GO_TYPE(userprobe, struct tally, tally);
GO_TYPE(userprobe, struct control, control);
GO_VALUES(userprobe, enum limits, );
GO_VALUES(userprobe, enum own_groups, );
GO_VALUES(userprobe, enum origin, );
GO_VALUES(userprobe, enum kind, kind);
GO_VALUES(userprobe, enum comparison, only);

#endif
