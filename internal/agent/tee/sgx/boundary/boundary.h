/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The types that both sides share, and the kernel's types that only this program needs. layout.go mirrors the
 * types listed at the end and is generated ("make generate-layouts"). */
#ifndef TEESCOPE_BOUNDARY_H
#define TEESCOPE_BOUNDARY_H

#include "layout.h"
#include "aex.h"

/* Fields of a probe's cookie: file 16 bits, whether its calls may be timed 1, whether they are ECALLs 1, whether each is a
 * crossing 1, whether its pairs are counted 1, role 4, cost 8, site 32. */
#define COOKIE_FILE(cookie)    ((u32)((cookie) >> 48))
#define COOKIE_ENDS(cookie)    ((cookie) >> 47 & 1)
#define COOKIE_INWARD(cookie)  ((cookie) >> 46 & 1)
#define COOKIE_CROSSES(cookie) ((cookie) >> 45 & 1)
#define COOKIE_PAIRS(cookie)   ((cookie) >> 44 & 1)
#define COOKIE_ROLE(cookie)    ((u32)((cookie) >> 40) & 0xf)
#define COOKIE_COST(cookie)    ((u32)((cookie) >> 32) & 0xff)
#define COOKIE_SITE(cookie)    ((u32)(cookie))

enum role {
	ROLE_PLAIN,
	ROLE_SDK_ECALL,
	ROLE_OE_ECALL,
	ROLE_OE_DISPATCH,
	ROLE_OCALL, /* of a file with workers: threads outside the enclave that make OCALLs without an exit */
};

/* The thread that makes an OCALL: the argument of a call with ROLE_OCALL. */
enum caller {
	BY_ENCLAVE,
	BY_WORKER,
};

enum lost {
	LOST_CALLS,
	LOST_TABLES,
	LOST_PROCESSES,
	LOST_THREADS,
	LOST_DURATIONS,
	LOST_CROSSED,
	LOST_PAIRS,
	LOSSES,
};

enum limits {
	MAX_FILES = 64,
};

/* The entries of which each tenant has a limited number. */
enum limited {
	LIMITED_THREADS,
	LIMITED_PAIRS,
	LIMITED_FOLLOWING,
	LIMITED_CALLS,
	LIMITED,
};

/* Numbers of users and of control groups. */
enum tenant {
	TENANT_ALL,	/* the sum of all */
	TENANT_ROOT,	/* root, and outside of control groups: without a limit of its own */
	TENANT_UNKNOWN, /* processes that user space has not seen, and owners without a number */
	TENANT_FIRST,
	MAX_TENANTS = 128,
};

/* The owners of a process: two numbers from enum tenant, each with a limit. */
struct owner {
	u32 user;
	u32 group;
	u64 lost_calls; /* of the process: not counted, because there was no place */
};

/* Entries of the maps that have limits by tenant. */
enum places {
	PLACES_THREADS = 4096,
	PLACES_PAIRS = 2048,
	PLACES_FOLLOWING = 4096,
	PLACES_CALLS = 16384,
};

enum call_limits {
	TOLD_APART = 256, /* numbers of functions */
};

enum durations {
	BUCKETS = 26, /* below 1024 ns, then doubled bounds, then all longer durations */
	BUCKET_SHIFT = 10,
};

/* The counters of a thread of Gramine, in the order of its control block. */
enum gramine_counter {
	EENTERS,
	EEXITS,
	AEXS,
	SYNC_SIGNALS,
	ASYNC_SIGNALS,
	COUNTERS,
};

enum {
	/* Open Enclave, include/openenclave/internal/calls.h: the first argument of a call or return. */
	OE_CODE_SHIFT = 48,
	OE_FUNC_SHIFT = 32,
	OE_CODE_OCALL = 3,
	OE_OCALL_BASE = 0x8000,
};

#define ECALL_RUNTIME (~0u) /* one of the runtime's own ECALLs */

struct file_state {
	u64 open; /* written by user space: the number of the interval in which calls count; 0 is none */
	u64 cost; /* of all hits, in hits of a cheap probe */
	u64 timed; /* written by user space: cost of a return of a watched process; 0 if returns are not probed */
	u64 begun; /* calls of watched processes, and how many of them have ended in their interval */
	u64 ended;
	u64 following; /* written by user space: another number whenever timing begins; 0 if returns are not probed */
};

struct call_key {
	u32 tgid;
	u32 site;
	u32 argument; /* number of the function, if one entry serves many */
};

/* The durations of the calls with one key. */
struct duration {
	u64 bucket[BUCKETS];
	u64 sum_ns;
};

/* The code from which workers call, as seen from the probed instruction. */
struct worker_code {
	u64 from; /* bytes; it wraps around if the code is before the instruction */
	u64 size; /* bytes */
};

/* What counts the transitions of a thread. The first are doors. */
enum crossed_by {
	BY_VDSO,
	BY_OWN,
	BY_CALLS,
};

struct crossed_key {
	u64 start; /* of the thread, in nanoseconds since boot */
	u32 tid;
	u32 by;
};

struct thread_transitions {
	u64 enters;
	u64 resumes;
	u32 tgid;
	u32 zero;
};

/* A called function. */
struct called {
	u32 site; /* 0 is none */
	u32 argument;
};

/* A call that has begun or returned. */
struct seen_call {
	struct called of;
	u64 frame;     /* stack pointer at the first instruction */
	u64 at;	       /* when it began or returned */
	u64 following; /* of the file, then */
	u32 file;
	u32 zero;
};

/* A timed call that has not returned. */
struct start {
	u64 frame; /* stack pointer at the first instruction */
	u64 ns;	   /* when it began; 0 if there is no call */
	u64 interval;
	u32 site;
	u32 argument;
};

/* The limit of timed calls of a thread that have not returned, a power of two. An ECALL that an OCALL makes has two outside it. */
enum open_calls { OPEN_CALLS = 8 };

/* The state of the calls of a thread. */
struct thread_calls {
	struct start open[OPEN_CALLS];
	struct seen_call ecall;	 /* that runs */
	struct seen_call last;	 /* the last OCALL in it that has returned */
	struct seen_call before; /* the last ECALL that has returned */
	u64 nested;		 /* frame of the ECALL that an OCALL of it makes */
	u64 outside;		 /* an OCALL runs */
	u32 tgid;
	u32 zero;
};

/* Which calls are a pair, and which time belongs to it. */
enum pair_kind {
	PAIR_BEGIN, /* an OCALL in an ECALL; between their beginnings */
	PAIR_END,   /* the last OCALL in an ECALL; between their ends */
	PAIR_NEXT_OCALL, /* two OCALLs of one ECALL, one after the other; from the end to the beginning */
	PAIR_NEXT_ECALL, /* the same for two ECALLs of a thread */
	PAIR_CALL,	 /* a call and itself; from its beginning to its end */
};

struct pair_key {
	struct called from;
	struct called to;
	u32 tgid;
	u32 kind;
};

/* The limits of sgx-perf (Weichbrodt et al., Middleware 2018). Longer times are in no bucket. */
enum within {
	WITHIN_1US,
	WITHIN_5US, /* and not shorter */
	WITHIN_10US,
	WITHIN_20US,
	WITHINS,
};

struct pair {
	u64 n;
	u64 ns; /* sum of all */
	u64 within[WITHINS];
};

struct table_key {
	u64 address;
	u32 tgid;
	u32 zero;
};

/* Interrupts and page faults that have arrived in the enclaves of a process. */
struct interrupted {
	u64 n[CAUSES];
	u64 started; /* of the process, in ticks since boot: the next one with its ID is another */
};

/* The location of an ENCLU with a breakpoint. */
enum doors {
	DOOR_VDSO,
	DOOR_OWN, /* in the code of a runtime */
	DOORS,
};

/* A thread at its last AEXs that have not been resumed: 1 + enum cause, or 0 if no event was seen. */
struct left {
	u32 cause;
	u32 outer;	     /* the AEX that a handler in the enclave handles now */
	u64 interval[DOORS]; /* in which the thread left, 0 if its ENCLU there was not counted */
};

/* How often a process has executed ENCLU at one door since its threads have breakpoints there. */
struct transitions {
	u64 enters;		  /* EENTER */
	u64 resumes;		  /* ERESUME; each ends an AEX */
	u64 causes[CAUSE_PLACES]; /* of these AEXs */
	u64 born; /* threads and processes that it has created since the entry was */
	u32 tree; /* the number of its breakpoints, or of the breakpoints that it inherited */
	u32 left; /* it runs another program without breakpoints */
};

enum { EENTER = 2 }; /* in RAX at ENCLU */

struct layout {
	u32 offsets[COUNTERS]; /* from the GS base */
};

struct thread_key {
	u64 start; /* nanoseconds since boot */
	u32 tid;
	u32 zero;
};

struct ended {
	u64 counters[COUNTERS];
	u64 gs;
	u64 at; /* nanoseconds since boot; the values are older */
	u32 tgid;
	u32 zero;
};

struct thread {
	u64 start;
	u64 gs;
	u32 tgid;
	u32 tid;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs___args {
	unsigned long ax, dx, si, di, sp, ip;
};

struct inode;

struct file___mapped {
	struct inode *f_inode;
};

struct vm_area_struct___mapped {
	struct file___mapped *vm_file;
};

struct thread_struct___gs {
	unsigned long gsbase;
};

struct task_struct___gs {
	struct thread_struct___gs thread;
	pid_t pid;
	pid_t tgid;
	u64 start_boottime;
	struct task_struct___gs *group_leader;
	struct completion
		*vfork_done; /* set in the child of vfork() until it executes a program or ends */
};

#pragma clang attribute pop

/* Each package has the types of the maps that it reads. */
GO_TYPE(window, struct file_state, FileState);
GO_VALUES(window, enum limits, );
GO_TYPE(functions, struct call_key, callKey);
GO_TYPE(functions, struct duration, duration);
GO_TYPE(functions, struct table_key, tableKey);
GO_TYPE(functions, struct worker_code, workerCode);
GO_VALUES(functions, enum call_limits, );
GO_VALUES(functions, enum role, );
GO_VALUES(functions, enum caller, );
GO_TYPE(functions, struct called, called);
GO_TYPE(functions, struct pair_key, pairKey);
GO_TYPE(functions, struct pair, pairCount);
GO_VALUES(functions, enum pair_kind, );
GO_VALUES(functions, enum limited, );
GO_VALUES(functions, enum tenant, );
GO_TYPE(functions, struct owner, owner);
GO_TYPE(transition, struct crossed_key, Key);
GO_TYPE(transition, struct thread_transitions, Entry);
GO_VALUES(transition, enum crossed_by, );
GO_TYPE(transition, struct thread_key, FollowedKey);
GO_TYPE(transition, struct called, called);
GO_TYPE(transition, struct seen_call, seenCall);
GO_TYPE(transition, struct start, start);
GO_TYPE(transition, struct thread_calls, Followed);
GO_VALUES(count, enum durations, );
GO_TYPE(gramine, struct layout, layout);
GO_TYPE(gramine, struct thread_key, threadKey);
GO_TYPE(gramine, struct ended, endedThread);
GO_TYPE(gramine, struct thread, liveThread);
GO_VALUES(gramine, enum gramine_counter, );
GO_TYPE(breakpoint, struct transitions, counts);
GO_TYPE(interrupts, struct interrupted, counts);
GO_VALUES(aex, enum cause, );
GO_VALUES(breakpoint, enum doors, );

#endif
