/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a thread has used since it was switched in, by the kernel's counters of the thread. */
#ifndef TEESCOPE_USED_H
#define TEESCOPE_USED_H

#include "log2.h"
#include "slots.h"

static __always_inline void read_counters(struct thread_counters *c, struct task_struct *task)
{
	c->run_ns = task->se.sum_exec_runtime;
	c->user_ns = task->utime;
	c->sys_ns = task->stime;
	c->minor_faults = task->min_flt;
	c->major_faults = task->maj_flt;
	if (bpf_core_field_exists(task->sched_info.run_delay))
		c->delay_ns = task->sched_info.run_delay;
	if (bpf_core_field_exists(task->sched_info.pcount))
		c->waits = task->sched_info.pcount;
}

/* Counts the wait for a CPU that ended when the running thread was switched in. The kernel ends a wait after the
 * tracepoint of that switch. So the thread's counters contain it when the thread is switched out, and no clock is read.
 * More than one wait means that a switch was missed: each counts with the mean. */
static __always_inline void add_wait(struct row *row, u64 waits, u64 ns)
{
	u32 bucket = bucket_of(waits > 1 ? ns / waits : ns, WAIT_SHIFT, WAITS);

	if (bucket < WAITS)
		row->waits[bucket] += waits;
}

/* Adds to the row what the running thread has used since it was switched in. */
static __always_inline u64 add_used(struct row *row, struct cpu_state *state,
				    struct task_struct *task)
{
	struct thread_counters now = {};

	read_counters(&now, task);
	row->run_ns += now.run_ns - state->start.run_ns;
	row->user_ns += now.user_ns - state->start.user_ns;
	row->sys_ns += now.sys_ns - state->start.sys_ns;
	row->delay_ns += now.delay_ns - state->start.delay_ns;
	if (now.waits != state->start.waits)
		add_wait(row, now.waits - state->start.waits, now.delay_ns - state->start.delay_ns);
	row->minor_faults += now.minor_faults - state->start.minor_faults;
	row->major_faults += now.major_faults - state->start.major_faults;
	return now.delay_ns - state->start.delay_ns;
}

#endif
