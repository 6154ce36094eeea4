/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Whether a process is a descendant of the one that user space names. */
#ifndef TEESCOPE_DESCENT_H
#define TEESCOPE_DESCENT_H

#include "kernel.h"

/* The most generations between a process and its ancestor. */
#define ANCESTORS 32

/* The process whose descendants are marked, or 0. */
const volatile u32 ancestor = 0;

/* Reports whether the process of a task is a descendant of the ancestor. */
static __always_inline bool descends(struct task_struct *task)
{
	struct task_struct *t = task;
	int i;

	if (!ancestor)
		return false;
	for (i = 0; i < ANCESTORS; i++) {
		t = BPF_CORE_READ(t, real_parent);
		u32 tgid = BPF_CORE_READ(t, tgid);

		if (tgid == ancestor)
			return true;
		if (tgid <= 1)
			break;
	}
	return false;
}

#endif
