// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * Counts the use of the kernel by each workload: system calls, context switches, page faults, page cache, CPU time.
 *
 * A system call costs two array look-ups, which the verifier inlines, and one increment. It needs no hash and no
 * per-thread storage, because the context switch, which is rarer, stores which row each CPU counts into. Only a timed
 * call reads the clock. CPU time, run-queue wait and major and minor faults need no event. The kernel keeps them for each thread,
 * and each context switch adds the difference since the thread was switched in to the row.
 */
#include "block.h"
#include "cache.h"
#include "changes.h"
#include "errors.h"
#include "faults.h"
#include "metering.h"
#include "processes.h"
#include "remote.h"
#include "resident.h"
#include "running.h"
#include "slots.h"
#include "timing.h"
#include "used.h"

/* Makes this CPU count into the slot of the thread that is about to run, or that runs under a new name. */
static __always_inline void set_slot(struct cpu_state *state, struct task_struct *task, u32 slot)
{
	if (slot >= slots)
		slot = SLOT_OTHER;
	state->row = state->first_row + slot;
	state->slot = slot;
	touch(state, slot);
	if (count_errors) {
		struct watched_slot *of = watched_of(slot);

		state->watched = of != NULL;
		state->place = of ? of->place : 0;
	}
	read_counters(&state->start, task);
}

/* Returns the slot of a process. A process whose start was not seen gets a slot now. */
static __always_inline u32 slot_of(struct task_struct *task)
{
	u16 *known = pid_slot(task->tgid);

	if (!known)
		return SLOT_OTHER;
	if (*known != SLOT_UNKNOWN && *known != SLOT_ENDED)
		return *known;
	return assign(task->group_leader);
}

/* Resynchronises the state of this CPU after a missed context switch. The kernel does not run programs at every
 * switch: it skips a program that interrupts itself, and some kernels hide tasks. The thread that ran before was
 * switched out at least once. The kernel's counters of the new thread show its usage since. */
static __noinline int resync(struct cpu_state *state, struct task_struct *task)
{
	bool first;
	u32 policy;
	struct row *row;

	if (!state || !task)
		return 0;
	first = state->pid == PID_UNKNOWN; /* nothing was missed: the programs were just attached */
	row = row_of(state);
	if (row && !first) {
		lost(LOST_SWITCHES);
		row->switches[0]++;
		state->switches++;
	}
	state->regs = 0;
	state->task = (u64)task;
	state->pid = task->pid;
	state->nvcsw = task->nvcsw;
	if (time_calls)
		take_call(state);
	set_slot(state, task, slot_of(task));
	if (time_calls)
		end_wait(state);
	policy = task->policy;
	if (!first && (policy == SCHED_NORMAL || policy == SCHED_BATCH || policy == SCHED_IDLE))
		state->start.run_ns = task->se.prev_sum_exec_runtime;
	return 0;
}

/* Returns the state of this CPU, synchronised with the current thread. Not for programs that interrupt the scheduler. */
static __always_inline struct cpu_state *current_state(struct task_struct *task)
{
	struct cpu_state *state = this_cpu();

	if (state && state->task != (u64)task)
		resync(state, task);
	return state;
}

static __always_inline int on_switch(bool preempt, struct task_struct *prev,
				     struct task_struct *next)
{
	struct cpu_state *state = this_cpu();
	struct row *row;
	bool involuntary;
	u64 waited = 0;

	if (!state)
		return 0;
	if (state->task == (u64)prev) {
		/* __schedule has just counted this switch as voluntary or involuntary. */
		involuntary = state->nvcsw == prev->nvcsw;
	} else {
		resync(state, prev);
		involuntary = preempt;
	}
	row = row_of(state);
	if (row) {
		waited = add_used(row, state, prev);
		row->switches[involuntary]++;
	}
	state->switches++;
	if (time_calls) {
		state->pid = prev->pid; /* an exec may have changed it */
		if (state->waited_outside && waited)
			add_outside(state, CALL_CPU_WAIT, waited);
		if (!involuntary)
			begin_io_wait(state, prev);
		leave_call(state);
	}
	state->regs = 0;
	state->task = (u64)next;
	state->pid = next->pid;
	if (time_calls)
		take_call(state);
	state->nvcsw = next->nvcsw;
	set_slot(state, next, slot_of(next));
	if (time_calls)
		end_wait(state);
	if (state->clock_cycle != control.clock_cycle)
		read_clock_lead(state, next);
	return 0;
}

/* Returns the state of this CPU, synchronised with the thread whose registers are saved at `regs`. The address
 * identifies the thread, because each thread has its own stack. Only the first call after a switch gets the current
 * task: that needs a function call, whose return is expensive on some processors. */
static __always_inline struct cpu_state *calling_state(struct pt_regs *regs)
{
	struct cpu_state *state = this_cpu();
	struct task_struct *task;

	if (!state || state->regs == (u64)regs)
		return state;
	task = bpf_get_current_task_btf();
	if (state->task != (u64)task)
		resync(state, task);
	state->regs = (u64)regs;
	return state;
}

/* SYSCALL, which 64-bit code uses, saves the return address in RCX. Otherwise the thread's status shows how it
 * entered the kernel. */
static __always_inline bool is_compat(struct pt_regs *regs)
{
	if (regs->cx == regs->ip)
		return false;
	return bpf_get_current_task_btf()->thread_info.status & TS_COMPAT;
}

/* Returns the index of a system call in row.calls. */
static __always_inline u32 call_index(struct pt_regs *regs, long nr)
{
	u32 call = nr;

	if (call >= CALL_IO_WAIT)
		call = CALL_OTHER;
	if (is_compat(regs))
		call = CALL_COMPAT;
	return call & (CALLS - 1);
}

static __always_inline int on_enter(struct pt_regs *regs, long nr)
{
	struct cpu_state *state;
	struct row *row;
	u32 call;

	if (!open_now())
		return 0;
	state = calling_state(regs);
	row = row_of(state);
	if (!row)
		return 0;
	call = call_index(regs, nr);
	count_call(row, call);
	if (time_calls)
		begin_call(state, call);
	return 0;
}

static __always_inline int on_exit(struct pt_regs *regs, long ret)
{
	struct cpu_state *state = calling_state(regs);

	if (!state)
		return 0;
	if (count_errors && state->watched)
		end_watched(state, call_index(regs, regs->orig_ax), ret);
	if (time_calls)
		end_call(state);
	return 0;
}

/* Runs in the parent, before the child first runs. So every process has its slot from its first event. A reused
 * process ID never counts into the old slot. */
static __always_inline int on_fork(struct task_struct *parent, struct task_struct *child)
{
	u32 tgid = child->tgid, slot;
	struct cpu_state *state = current_state(parent);
	struct row *row = row_of(state);
	u16 *its = pid_slot(tgid);
	struct watched_slot *of;

	if (tgid != child->pid) {
		if (row)
			row->threads++;
		return 0;
	}
	changed(tgid);
	if (!row)
		return 0;
	row->forks++;
	/* By CLONE_INTO_CGROUP, or from a thread that has another cgroup than its process. */
	if (child->cgroups != parent->group_leader->cgroups) {
		assign(child);
		return 0;
	}
	slot = state->slot;
	of = watched_of(slot);
	if (of)
		slot = of->base;
	if (its)
		*its = slot;
	else
		lost(LOST_PIDS);
	return 0;
}

/* Moves the current task to the slot of its new program or cgroup. */
static __always_inline void move(struct cpu_state *state, struct task_struct *task)
{
	struct row *row = row_of(state);

	if (!row)
		return;
	add_used(row, state, task);
	set_slot(state, task, assign(task->group_leader));
}

static __always_inline int on_exec(struct task_struct *task, u32 old_pid)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u32 call = BPF_CORE_READ(regs, orig_ax) & (CALLS - 1);
	struct cpu_state *state = current_state(task);
	struct row *old = row_of(state), *row;
	u32 before;

	changed(task->tgid);
	if (time_calls)
		rename_start(old_pid, task->pid);
	if (!old)
		return 0;
	state->pid = task->pid;
	before = state->slot;
	move(state, task);
	row = row_of(state);
	if (!row)
		return 0;
	row->execs++;
	if (old != row && !control.sampled) {
		/* execve counts as the new program's first system call, as in strace. While calls are sampled,
		 * it may not have been counted. */
		old->calls[call]--;
		mark_call(old, call);
		count_call(row, call);
		touch(state, before);
	}
	return 0;
}

/* A process ends with its last thread. The kernel has subtracted the thread from signal_struct.live before. So the last
 * two may both find none left. The next process with this ID gets a slot even if its start is not seen. */
static __always_inline int on_thread_exit(struct task_struct *task)
{
	struct cpu_state *state = current_state(task);
	struct row *row = row_of(state);

	if (time_calls && state)
		drop_call(state);
	if (!task->signal->live.counter && end_process(task->tgid) && row)
		row->exits++;
	return 0;
}

/* A process has the cgroup of its first thread. `moved` may be any of its threads, alone or for all of them. */
static __always_inline int on_attach(struct task_struct *moved)
{
	struct task_struct *task = bpf_get_current_task_btf();

	/* If `moved` is not current, its CPU changes the slot at its next switch. */
	if (task->tgid == moved->tgid)
		move(current_state(task), task);
	else
		assign(moved->group_leader);
	return 0;
}

static __always_inline int on_fault(u32 mode, unsigned long code)
{
	struct row *row = row_of(current_state(bpf_get_current_task_btf()));

	if (row && (mode || open_now())) /* faults in kernel mode are rare, and never sampled */
		row->faults[mode][reason_of(code)]++;
	return 0;
}

/* Returns the slot for a request of this thread, which makes it, or writes back, encrypts or dispatches for another one. */
static __always_inline u32 requesting_slot(struct request *rq)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu_state *state;

	if (task->flags & PF_KTHREAD)
		return charged_slot(rq);
	state = current_state(task);
	return state ? state->slot : SLOT_OTHER;
}

#define TRACEPOINT(name, body, ...)                                                                \
	SEC("tp_btf/" #name) int BPF_PROG(name, ##__VA_ARGS__)                                     \
	{                                                                                          \
		return body;                                                                       \
	}

TRACEPOINT(sys_enter, METERED(METER_CALL, on_enter(regs, nr)), struct pt_regs *regs, long nr)
TRACEPOINT(sys_exit, METERED(METER_EXIT, on_exit(regs, ret)), struct pt_regs *regs, long ret)
TRACEPOINT(sched_switch, METERED(METER_SWITCH, on_switch(preempt, prev, next)), bool preempt,
	   struct task_struct *prev, struct task_struct *next)
TRACEPOINT(sched_process_fork, on_fork(parent, child), struct task_struct *parent,
	   struct task_struct *child)
TRACEPOINT(sched_process_exec, on_exec(task, old_pid), struct task_struct *task, pid_t old_pid)
TRACEPOINT(sched_process_exit, on_thread_exit(task), struct task_struct *task)
TRACEPOINT(sched_migrate_task, on_migrate(task), struct task_struct *task)
SEC("tp_btf/mark_victim") int mark_victim(u64 *ctx)
{
	return on_oom_kill(ctx[0]);
}
TRACEPOINT(cgroup_attach_task, on_attach(moved), void *cgroup, const char *path,
	   struct task_struct *moved)
TRACEPOINT(page_fault_user, METERED(METER_FAULT, on_fault(0, code)), unsigned long address,
	   struct pt_regs *regs, unsigned long code)
TRACEPOINT(page_fault_kernel, on_fault(1, code), unsigned long address, struct pt_regs *regs,
	   unsigned long code)
TRACEPOINT(block_io_start, begin_new_request(rq, requesting_slot(rq)), struct request *rq)
TRACEPOINT(block_rq_insert, begin_request(rq, requesting_slot(rq), BPF_ANY), struct request *rq)
TRACEPOINT(block_rq_issue, begin_request(rq, requesting_slot(rq), BPF_NOEXIST), struct request *rq)
TRACEPOINT(block_rq_merge, forget_request(rq), struct request *rq)
TRACEPOINT(block_rq_complete, end_request(rq, bytes), struct request *rq, int error,
	   unsigned int bytes)
TRACEPOINT(mm_filemap_add_to_page_cache, on_cache(CACHE_INSERTION, pages_of(folio)), void *folio)
TRACEPOINT(writeback_dirty_folio, on_cache(CACHE_DIRTY_PAGE, pages_of(folio)), void *folio)
TRACEPOINT(writeback_dirty_page, on_cache(CACHE_DIRTY_PAGE, 1))
TRACEPOINT(block_dirty_buffer, on_frequent_cache(CACHE_DIRTY_BUFFER, 1))
TRACEPOINT(mm_filemap_get_pages, METERED(METER_CACHE, on_get_pages(mapping, first, last)),
	   struct address_space *mapping, unsigned long first, unsigned long last)

SEC("fentry/filemap_read")
int BPF_PROG(filemap_read_fentry, struct kiocb *call, struct iov_iter *to)
{
	return METERED(METER_CACHE, on_read(call, to));
}

SEC("kprobe/filemap_read") int filemap_read_kprobe(struct pt_regs *regs)
{
	return METERED(METER_CACHE,
		       on_read((void *)BPF_CORE_READ(regs, di), (void *)BPF_CORE_READ(regs, si)));
}

const volatile u64 sample_period = 1; /* events between two overflows of a counter */

SEC("perf_event") int llc_references(void *ctx)
{
	struct row *row = row_of(this_cpu());

	if (row)
		row->llc_references += sample_period;
	return 0;
}

SEC("perf_event") int llc_misses(void *ctx)
{
	struct row *row = row_of(this_cpu());

	if (row)
		row->llc_misses += sample_period;
	return 0;
}

/* Stores the counters of a running thread. No switch has added them to a row yet. */
static __always_inline void snapshot(struct task_struct *task)
{
	struct task_struct___cpu *older = (void *)task;
	struct cpu_state *state;
	u32 cpu;

	if (bpf_core_field_exists(task->thread_info.cpu))
		cpu = BPF_CORE_READ(task, thread_info.cpu);
	else
		cpu = BPF_CORE_READ(older, cpu);
	state = bpf_map_lookup_elem(&cpus, &cpu);
	if (!state)
		return;
	if (state->pid == PID_UNKNOWN) {
		/* The thread ran when the programs were attached and has not been switched out since. */
		u32 slot = slot_of(task);

		state->row = state->first_row + slot;
		state->slot = slot;
		touch(state, slot);
		state->nvcsw = task->nvcsw;
		read_counters(&state->start, task);
		state->task = (u64)task;
		state->pid = task->pid;
	}
	if (state->task != (u64)task)
		return;
	state->snapshot_switches = state->switches;
	read_counters(&state->inflight, task);
	state->inflight.run_ns += uncounted_ns(state, task);
}

/* User space runs this on each CPU at the beginning and at the end of a window. */
SEC("raw_tp") int snapshot_here(void *ctx)
{
	snapshot(bpf_get_current_task_btf());
	return 0;
}

/* Runs for each thread: gives a slot to processes without one, and counts processes, threads and resident memory of
 * each slot. Idle threads are not on the list of tasks. */
SEC("iter/task") int tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct gauge *gauge;
	u32 slot;

	if (!task || task->exit_state)
		return 0;
	slot = slot_of(task);
	if (task->flags & PF_EXITING) {
		gauge = bpf_map_lookup_elem(&gauges, &slot);
		if (gauge)
			gauge->exiting++;
		return 0;
	}
	if (slot == SLOT_OTHER) /* a slot may be free by now */
		slot = assign(task->group_leader);
	if (task->on_cpu)
		snapshot(task);
	if (time_calls)
		add_call_so_far(task->pid, slot);
	gauge = bpf_map_lookup_elem(&gauges, &slot);
	if (!gauge)
		return 0;
	gauge->threads++;
	if (stands_for_process(task)) {
		u64 started = BPF_CORE_READ(task, group_leader, start_boottime);

		gauge->processes++;
		gauge->rss_pages += resident(task);
		if (!gauge->oldest || started < gauge->oldest_start) {
			gauge->oldest_start = started;
			gauge->oldest = task->tgid;
		}
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
