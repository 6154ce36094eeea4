/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The CPU time of a running thread.
 *
 * The kernel adds to sum_exec_runtime at switches and ticks, so it may be 10 ms old, and a window may be 2 ms long. The missing
 * part is the scheduler's clock minus exec_start (update_curr in kernel/sched/fair.c). Programs cannot read this clock. It
 * advances like bpf_ktime_get_ns, and a context switch has just read it. So the difference of the two clocks is stored at one
 * switch of each cycle.
 */
#ifndef TEESCOPE_RUNNING_H
#define TEESCOPE_RUNNING_H

#include "slots.h"

enum {
	/* An update of the scheduler's clock is due at each tick. A longer time is an error of the clocks. */
	MOST_UNCOUNTED_NS = 1100000000,
};

static __always_inline struct rq *rq_of(struct task_struct *task)
{
	struct cfs_rq *queue = NULL;

	if (!bpf_core_field_exists(queue->rq) || !bpf_core_field_exists(task->se.cfs_rq))
		return NULL;
	queue = BPF_CORE_READ(task, se.cfs_rq);
	return BPF_CORE_READ(queue, rq);
}

static __noinline int read_clock_lead(struct cpu_state *state, struct task_struct *task)
{
	struct rq *rq;

	if (!state || !task)
		return 0;
	rq = rq_of(task);
	if (!rq)
		return 0;
	state->clock_lead = BPF_CORE_READ(rq, clock) - bpf_ktime_get_ns();
	state->clock_cycle = control.clock_cycle;
	return 0;
}

/* Returns the run time of the running thread of a CPU that sum_exec_runtime does not contain yet. */
static __always_inline u64 uncounted_ns(struct cpu_state *state, struct task_struct *task)
{
	struct rq *rq = rq_of(task);
	s64 passed, uncounted;

	if (!rq || !state->clock_cycle)
		return 0;
	passed = bpf_ktime_get_ns() + state->clock_lead - BPF_CORE_READ(rq, clock);
	if (passed < 0)
		passed = 0;
	uncounted = BPF_CORE_READ(rq, clock_task) + passed - BPF_CORE_READ(task, se.exec_start);
	return uncounted > 0 && uncounted < MOST_UNCOUNTED_NS ? uncounted : 0;
}

#endif
