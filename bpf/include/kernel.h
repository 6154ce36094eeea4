/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The kernel types that teescope's programs access. Every record is relocated against the running kernel's BTF when it
 * is loaded (CO-RE). So only names and types matter here, and not offsets, order or the fields left out. A suffix after
 * three underscores marks the declaration of a type in another kernel version.
 */
#ifndef TEESCOPE_KERNEL_H
#define TEESCOPE_KERNEL_H

typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;
typedef _Bool bool;
typedef int pid_t;

#define true 1
#define false 0
#define NULL ((void *)0)

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_MMAPABLE = 1024,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
};

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_QUEUE = 22,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

/* include/linux/sched.h */
enum {
	PF_EXITING = 0x00000004,
	PF_KTHREAD = 0x00200000,
};

/* include/uapi/linux/sched.h */
enum {
	SCHED_NORMAL = 0,
	SCHED_BATCH = 3,
	SCHED_IDLE = 5,
};

/* arch/x86/include/asm/thread_info.h: the thread is in a 32-bit system call. */
enum {
	TS_COMPAT = 0x0002,
};

/* arch/x86/include/asm/trap_pf.h: the error code that the CPU pushes on a page fault. */
enum {
	X86_PF_PROT = 1 << 0,
	X86_PF_WRITE = 1 << 1,
	X86_PF_USER = 1 << 2,
	X86_PF_RSVD = 1 << 3,
	X86_PF_INSTR = 1 << 4,
	X86_PF_PK = 1 << 5,
	X86_PF_SGX = 1 << 15,
};
#define X86_PF_RMP (1UL << 31)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long cx;
	unsigned long ip;
	unsigned long ax;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
};

struct thread_info {
	u32 status;
	u32 cpu; /* from 5.16 */
};

struct atomic {
	int counter;
};

struct atomic_long {
	s64 counter;
};

struct percpu_counter {
	s64 count;
	s32 *counters; /* __percpu */
};

/* 6.2 and later count resident pages in per-CPU counters (file, anonymous, swap entries, shmem). */
struct mm_struct {
	struct percpu_counter rss_stat[4];
	unsigned long arg_start;
};

struct mm_rss_stat___old {
	struct atomic_long count[4];
};

struct mm_struct___old {
	struct mm_rss_stat___old rss_stat;
};

struct list_head {
	struct list_head *next;
};

struct signal_struct {
	struct atomic live;	      /* threads that have not begun to exit */
	struct list_head thread_head; /* of task_struct.thread_node */
};

/* The queue of a CPU, and its clocks as last read: at each switch and tick. */
struct rq {
	u64 clock;	/* nanoseconds */
	u64 clock_task; /* without interrupts and time that the hypervisor took */
};

struct cfs_rq {
	struct rq *rq; /* with CONFIG_FAIR_GROUP_SCHED */
};

struct sched_entity {
	u64 exec_start;		   /* rq.clock_task when sum_exec_runtime was last updated */
	struct cfs_rq *cfs_rq;	   /* with CONFIG_FAIR_GROUP_SCHED */
	u64 sum_exec_runtime;	   /* nanoseconds */
	u64 prev_sum_exec_runtime; /* its value when the thread was picked to run; fair class only */
};

struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay; /* nanoseconds spent runnable and waiting for a CPU */
};

struct kernfs_node {
	struct kernfs_node *parent; /* to 6.14 */
	const char *name;
	u64 id;
};

struct kernfs_node___rcu {
	struct kernfs_node *__parent; /* from 6.15 */
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid; /* the real user */
};

struct task_io_accounting {
	u64 syscr; /* calls that have read, with CONFIG_TASK_XACCT */
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int flags;
	unsigned int policy;
	u8 on_cpu; /* int in older kernels; the value is 0 or 1 */
	struct sched_entity se;
	struct sched_info sched_info;
	struct mm_struct *mm;
	pid_t pid;
	pid_t tgid;
	struct task_struct *group_leader;
	struct list_head thread_node;
	int exit_state;	    /* not 0 once the thread runs no more */
	u64 start_boottime; /* nanoseconds, with the time in suspend */
	u64 utime;
	u64 stime;
	unsigned long nvcsw;
	unsigned long min_flt;
	unsigned long maj_flt;
	char comm[16];
	struct signal_struct *signal;
	struct task_struct *real_parent;
	struct css_set *cgroups;
	const struct cred *real_cred;
	struct task_io_accounting ioac;
};

struct task_struct___cpu {
	unsigned int cpu; /* to 5.15 */
};

/* Several pages that the page cache handles as one. Older kernels pass pages. */
struct folio {
	unsigned long flags;
	unsigned int _folio_nr_pages; /* from 6.1 to 6.14; only of a folio with PG_head */
};

struct folio___nr {
	unsigned int _nr_pages; /* from 6.15 */
};

typedef struct {
	unsigned long f;
} memdesc_flags_t;

struct folio___memdesc {
	memdesc_flags_t flags; /* from 6.18 */
};

struct trace_event_raw_mark_victim___named {
	unsigned int uid; /* from 6.10 */
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* include/linux/page-flags.h */
enum pageflags {
	PG_head = 6, /* the folio has several pages */
};

enum cgroup_subsys_id {
	cpu_cgrp_id = 1,
	memory_cgrp_id = 2,
	devices_cgrp_id = 3,
	pids_cgrp_id = 4,
};

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#endif
