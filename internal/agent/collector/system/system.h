/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The records that the kernel side (system.bpf.c) writes and the user side reads. layout.go, which mirrors them, is
 * generated ("make generate-layouts") from what is listed at the end.
 *
 * A slot is the number of a group (bpf/include/group.h), where counts go: one for each group of processes that share a
 * cgroup and a program name, plus one for each watched process. User space adds slots up into workloads. A row is one slot on one CPU, so that no
 * counter is ever shared between CPUs and none needs an atomic operation.
 */
#ifndef TEESCOPE_SYSTEM_H
#define TEESCOPE_SYSTEM_H

#include "cgroup.h"
#include "layout.h"

enum calls {
	CALLS = 512,	   /* system call numbers, x86-64: 0 to 471 in Linux 6.18 */
	CALL_COMPAT = 510, /* made through the 32-bit entry: another numbering */
	CALL_OTHER = 511,  /* x32, negative and future numbers */
};

enum slots {
	SLOT_UNKNOWN = 0, /* not looked at yet */
	SLOT_OTHER = 1,	  /* no slot was free */
	SLOT_KERNEL = 2,  /* kernel threads */
	SLOT_IDLE = 3,	  /* the idle threads, pid 0 */
	SLOT_FIRST = 4,	  /* the first that is handed out */
};

enum pids {
	PID_UNKNOWN = 0xffffffff,
	PIDS_PER_PAGE = 2048, /* process IDs in one value of slot_of_pid or calls_in_flight */
};

enum {
	CALL_BITS = 9, /* of a call in flight: its number, below the time that it began */

	MOST_RUN_NS = 20000, /* of a program that measures itself */

	MAX_PRECISE_CPUS = 64, /* beyond, resident memory is the kernel's own approximation */
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

struct row {
	u64 calls[CALLS];
	u64 switches[2]; /* voluntary, involuntary: as /proc/PID/status counts them */
	u64 migrations;
	u64 run_ns;   /* time on a CPU */
	u64 user_ns;  /* of which in user mode, by the kernel's own (tick or context) accounting */
	u64 sys_ns;   /* and in kernel mode; run_ns is exact, these two give its division */
	u64 delay_ns; /* runnable, waiting for a CPU */
	u64 minor_faults;
	u64 major_faults;
	u64 forks;
	u64 threads;
	u64 execs;
	u64 exits;
	u64 faults[2][FAULT_REASONS]; /* user mode, kernel mode */
	u64 cache[CACHE_OPS];
	u64 llc_references;
	u64 llc_misses;
	u64 reserved[27];
};

/* What is kept for each of some process IDs in succession. */
struct pid_page {
	u16 slot[PIDS_PER_PAGE];
};

struct row_time {
	u64 call_ns[CALLS];
};

/* The programs on frequent events, which measure themselves while user space says so. */
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

/* What a CPU is running, and what that thread's own counters were when it was switched in. */
struct thread_counters {
	u64 run_ns;
	u64 user_ns;
	u64 sys_ns;
	u64 delay_ns;
	u64 minor_faults;
	u64 major_faults;
};

struct cpu_state {
	u32 row; /* index into rows: cpu * slots + slot */
	u32 slot;
	u32 pid;     /* of the running thread; PID_UNKNOWN before the first switch */
	u32 watched; /* the slot belongs to one watched process */
	u64 nvcsw;
	u64 switches; /* context switches on this CPU since attaching */
	u64 call;     /* the timed call that the thread is in (timing.h); 0: none */
	u64 regs;     /* where its registers are saved on entry; 0 until it has made a call here */
	struct thread_counters start;
	u64 snapshot_switches;		 /* `switches` when the iterator passed by */
	struct thread_counters inflight; /* what the running thread had used by then */
	struct run_time run_times[METERS];
	u64 reserved[3]; /* whole cache lines: no CPU writes into one of another's */
};

/* Filled by one pass of the task iterator. */
struct gauge {
	u64 processes;
	u64 threads;
	u64 rss_pages;
	u64 oldest_start; /* of the process that started first, nanoseconds since boot, with suspend */
	u32 oldest;	  /* its ID; 0: there is no process */
	u32 reserved;
};

struct error_key {
	u32 slot;
	u16 call;
	u16 error;
};

#define TIMING_RESTS (~0ULL)

/* What user space tells the programs while they run. */
struct control {
	u64 timing_since; /* calls that began after this (bpf_ktime_get_ns) are timed; ~0: none is */
	u64 sampled;	  /* frequent events are counted for a part of the time only */
	u64 closed;	  /* and not now, although the programs may be attached */
	u64 metering;	  /* the programs measure how long they run */
};

/* What was lost, and why. Index of `losses`. */
enum loss {
	LOST_GROUPS,   /* processes folded into SLOT_OTHER because no slot was free */
	LOST_PIDS,     /* processes with a pid beyond slot_of_pid */
	LOST_ERRORS,   /* failed system calls not counted: the map was full */
	LOST_SWITCHES, /* threads that were not seen to be switched in: healed at their next event */
	LOSSES,
};

GO_TYPE(system, struct row, row);
GO_TYPE(system, struct row_time, rowTime);
GO_TYPE(system, struct run_time, runTime);
GO_TYPE(system, struct thread_counters, threadCounters);
GO_TYPE(system, struct cpu_state, cpuState);
GO_TYPE(system, struct pid_page, pidPage);
GO_TYPE(system, struct gauge, gauge);
GO_TYPE(system, struct control, control);
GO_TYPE(system, struct error_key, errorKey);
GO_VALUES(system, enum calls, );
GO_VALUES(system, enum slots, );
GO_VALUES(system, enum pids, );
GO_VALUES(system, enum fault_reason, );
GO_VALUES(system, enum cache_op, );
GO_VALUES(system, enum metered, );

#endif
