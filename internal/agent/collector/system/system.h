/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The records that the kernel side (system.bpf.c) writes and the user side reads. layout.go mirrors them. "make
 * generate-layouts" generates it from the list at the end.
 *
 * A slot is the number of a group (bpf/include/group.h). Each group of processes of one cgroup and program name
 * has one, and so has each watched process. User space adds slots up into workloads. A row is one slot on one CPU.
 * No two CPUs use the same row, so counting in a row needs no atomic operation. All CPUs share the records of block
 * requests, of durations and of errors, and add to them atomically.
 */
#ifndef TEESCOPE_SYSTEM_H
#define TEESCOPE_SYSTEM_H

#include "cgroup.h"
#include "layout.h"

enum calls {
	CALLS = 512, /* system call numbers, x86-64: 0 to 471 in Linux 6.18 */
	/* Pseudo call numbers of times outside of system calls: */
	CALL_IO_WAIT = 508,  /* a thread waited for block I/O, in a page fault */
	CALL_CPU_WAIT = 509, /* a thread waited for a CPU; also in calls of idle_calls */
	CALL_COMPAT = 510,   /* made through the 32-bit entry, which has other numbers */
	CALL_OTHER = 511,    /* x32, negative and future numbers */
};

enum slots {
	SLOT_UNKNOWN = 0,    /* not assigned yet */
	SLOT_OTHER = 1,	     /* no slot was free */
	SLOT_KERNEL = 2,     /* kernel threads */
	SLOT_IDLE = 3,	     /* the idle threads, pid 0 */
	SLOT_FIRST = 4,	     /* the first that is assigned to groups */
	SLOT_ENDED = 0xffff, /* the last thread of the process has begun to exit */
};

enum call_marks {
	CALLS_PER_MARK = 16, /* calls with consecutive numbers, which have one mark in a row */
};

enum pids {
	PID_UNKNOWN = 0xffffffff,
	PIDS_PER_PAGE = 2048, /* process IDs in one value of slot_of_pid or calls_in_flight */
};

enum marks {
	MARKS = 2048, /* slots with a mark of their own; slots beyond use those of others */
};

enum waits {
	WAITS = 20, /* buckets of the waits for a CPU: below 4096 ns, then doubled bounds, then all longer waits */
	WAIT_SHIFT = 12, /* binary logarithm of the first bound */
};

enum durations {
	DURATION_BUCKETS =
		27, /* of system calls: below 256 ns, then doubled bounds, then all longer times */
	DURATION_SHIFT = 8, /* binary logarithm of the first bound */
	WATCHED_PLACES =
		32, /* twice the watched processes, because ended ones keep theirs for a while */
	RESTARTED_CALLS = 4096, /* in flight at a scrape, whose start is remembered */
};

enum block_op {
	BLOCK_READ,
	BLOCK_WRITE, /* with flushes */
	BLOCK_DISCARD,
	BLOCK_OPS,
};

enum block_buckets {
	BLOCK_BUCKETS =
		22, /* of the times of requests: below 8192 ns, then doubled bounds, then all longer times */
	BLOCK_SHIFT = 13, /* binary logarithm of the first bound */
};

enum {
	/* The low bits of the word of a call in flight: its number, and whether its time has been added up to the word's. */
	CALL_BITS = 10,
	CALL_RESTARTED = 1 << 9,

	MOST_RUN_NS = 20000, /* longer runs of a program are not measured */

	REQUESTS_IN_FLIGHT = 8192, /* whose workload is remembered */

	MAX_PRECISE_CPUS = 64, /* with more CPUs, resident memory is the kernel's approximation */
};

enum fault_reason {
	FAULT_NO_PAGE,
	FAULT_WRITE,
	FAULT_WRITE_PROT,
	FAULT_READ_PROT,
	FAULT_INSTR_FETCH,
	FAULT_PROTECTION_KEY,
	FAULT_SGX,
	FAULT_RMP,
	FAULT_OTHER,
	FAULT_REASONS,
};

enum cache_op {
	CACHE_INSERTION,
	CACHE_ACCESS,
	CACHE_DIRTY_PAGE,
	CACHE_DIRTY_BUFFER,
	CACHE_OPS,
};

enum direction {
	BYTES_IN, /* into the memory of the process */
	BYTES_OUT,
	DIRECTIONS,
};

struct row {
	u64 calls[CALLS];
	u64 switches[2]; /* voluntary, involuntary: as /proc/PID/status counts them */
	u64 migrations;
	u64 run_ns;   /* time on a CPU */
	u64 user_ns;  /* time in user mode, by the kernel's accounting (tick or context) */
	u64 sys_ns;   /* time in kernel mode, likewise; only run_ns is exact */
	u64 delay_ns; /* time runnable and waiting for a CPU */
	u64 minor_faults;
	u64 major_faults;
	u64 waits[WAITS]; /* for a CPU, by duration; beside what a switch adds to */
	u64 forks;
	u64 threads;
	u64 execs;
	u64 exits;
	u64 faults[2][FAULT_REASONS]; /* user mode, kernel mode */
	u64 cache[CACHE_OPS];
	u64 llc_references;
	u64 llc_misses;
	u64 oom_kills;
	u64 bytes[DIRECTIONS]; /* of system calls of watched processes */
	/* Not 0 if one of the calls may have been counted. User space reads no counters of other calls: programs make few of
	 * the calls. Storing a byte needs no atomic operation, because it does not change the bytes beside it. */
	u8 called[CALLS / CALLS_PER_MARK];
};

/* The requests of a slot to block devices, on all CPUs. */
struct block_io {
	u64 requests[BLOCK_OPS][BLOCK_BUCKETS]; /* by their time */
	u64 ns[BLOCK_OPS];
	u64 bytes[BLOCK_OPS];
};

/* The slots of consecutive process IDs. */
struct pid_page {
	u16 slot[PIDS_PER_PAGE];
};

struct row_time {
	u64 call_ns[CALLS];
};

/* The ended calls of a watched process with one number, on all CPUs. */
struct call_durations {
	u64 calls[DURATION_BUCKETS]; /* by their time */
	u64 ns;
};

/* The start of a call in flight whose word was restarted. */
struct call_start {
	u64 ns;	     /* when the call began (bpf_ktime_get_ns) */
	u64 word[2]; /* of the call before and after it was restarted last; the thread has one of them */
};

/* The properties of the slot of a watched process. */
struct watched_slot {
	u32 base;  /* the slot of its group, which its children get; 0 for other slots */
	u32 place; /* of its distributions, from 1; 0 without */
};

/* The programs on frequent events, which measure themselves while user space requests it. */
enum metered {
	METER_CALL,
	METER_EXIT,
	METER_SWITCH,
	METER_FAULT,
	METER_CACHE,
	METERS,
};

struct run_time {
	u64 runs;
	u64 ns;
};

/* The kernel's counters of a thread. */
struct thread_counters {
	u64 run_ns;
	u64 user_ns;
	u64 sys_ns;
	u64 delay_ns;
	u64 waits; /* how often it got a CPU after waiting for one */
	u64 minor_faults;
	u64 major_faults;
};

/* The thread that a CPU runs, and its counters when it was switched in. */
struct cpu_state {
	u32 row; /* index into rows: first_row + slot */
	u32 slot;
	u32 first_row; /* of this CPU; user space sets it */
	u32 pid;       /* of the running thread; PID_UNKNOWN before the first switch */
	u32 watched;   /* the slot belongs to one watched process */
	u32 place;     /* of its distributions, or 0 */
	u64 nvcsw;
	u64 switches; /* context switches on this CPU since attaching */
	u64 call;     /* the timed call that the thread is in (timing.h); 0: none */
	u64 waited_outside; /* the thread was in no call, or in an idle one, when it waited for this CPU */
	u64 regs; /* address of its registers saved on entry; 0 before its first call here */
	u64 task; /* its address, which identifies it: an exec may change the ID of a thread */
	struct thread_counters start;
	u64 snapshot_switches;		 /* `switches` at the last snapshot */
	struct thread_counters inflight; /* counters of the running thread at the last snapshot */
	struct run_time run_times[METERS];
	u64 clock_lead;	 /* of the scheduler's clock before bpf_ktime_get_ns; see running.h */
	u64 clock_cycle; /* value of control.clock_cycle when clock_lead was read */
	/* By slot: not 0 if the row may have counted since user space set the byte to 0. Storing a byte needs no atomic
	 * operation, because it does not change the bytes beside it. */
	u8 touched[MARKS];
	/* The size is a power of two, so that finding the state of a CPU takes a shift. */
	u8 reserved[1760];
};

/* The result of one pass of the task iterator. */
struct gauge {
	u64 processes;
	u64 threads;
	u64 rss_pages;
	u64 oldest_start; /* start of the first process: nanoseconds since boot, with suspend */
	u32 oldest;	  /* its ID; 0 without a process */
	u32 exiting;	  /* threads that exit and still run */
};

struct error_key {
	u32 slot;
	u16 call;
	u16 error;
};

#define TIMING_OFF (~0ULL)

/* Settings that user space changes while the programs run. */
struct control {
	u64 timing_since; /* calls that began after this (bpf_ktime_get_ns) are timed; or TIMING_OFF */
	u64 sampled;	  /* frequent events are counted in windows only */
	u64 closed;	  /* outside a window, where attached programs do not count either */
	u64 metering;	  /* the programs measure how long they run */
	u64 requests_since; /* requests that began before this (bpf_ktime_get_ns) may be unknown */
	u64 clock_cycle; /* each CPU reads its clock_lead again at the first switch after a change */
};

enum {
	CHANGES =
		4096, /* processes that are remembered until user space reads them; a power of two */
};

/* The processes that have started or run another program, as a ring. User space sets an entry to zero when it reads it. */
struct change_ring {
	u64 written; /* entries since the start */
	u32 tgid[CHANGES];
};

/* Kinds of losses: the index of `losses`. */
enum loss {
	LOST_GROUPS,   /* processes folded into SLOT_OTHER because no slot was free */
	LOST_PIDS,     /* processes with a pid beyond slot_of_pid */
	LOST_ERRORS,   /* failed system calls not counted, because the map was full */
	LOST_SWITCHES, /* missed context switches, found at the next event (resync) */
	LOST_REQUESTS, /* requests to block devices whose workload was not known at their end, or whose end was not seen */
	LOST_DURATIONS, /* calls that are in no distribution, because the map of their starts was full */
	LOSSES,
};

GO_TYPE(system, struct row, row);
GO_TYPE(system, struct row_time, rowTime);
GO_TYPE(system, struct call_durations, callDurations);
GO_TYPE(system, struct watched_slot, watchedSlot);
GO_TYPE(system, struct call_start, callStart);
GO_TYPE(system, struct block_io, blockIO);
GO_TYPE(system, struct run_time, runTime);
GO_TYPE(system, struct thread_counters, threadCounters);
GO_TYPE(system, struct cpu_state, cpuState);
GO_TYPE(system, struct pid_page, pidPage);
GO_TYPE(system, struct gauge, gauge);
GO_TYPE(system, struct control, control);
GO_TYPE(system, struct change_ring, changeRing);
GO_TYPE(system, struct error_key, errorKey);
GO_VALUES(system, enum calls, );
GO_VALUES(system, enum slots, );
GO_VALUES(system, enum call_marks, );
GO_VALUES(system, enum pids, );
GO_VALUES(system, enum marks, );
GO_VALUES(system, enum waits, );
GO_VALUES(system, enum durations, );
GO_VALUES(system, enum block_op, );
GO_VALUES(system, enum block_buckets, );
GO_VALUES(system, enum fault_reason, );
GO_VALUES(system, enum cache_op, );
GO_VALUES(system, enum direction, );
GO_VALUES(system, enum metered, );

#endif
