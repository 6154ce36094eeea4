/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Resident memory of a process, from the counters of its memory descriptor. */
#ifndef TEESCOPE_RESIDENT_H
#define TEESCOPE_RESIDENT_H

#include "slots.h"

/* Resident memory is file and anonymous pages and shared memory. Swap entries (index 2) are not resident.
 * The two functions are not inlined. Otherwise the compiler would move the relocation of the layout that this kernel
 * lacks out of the branch that guards it. Each begins with a test, because the loader loses the name of a function
 * whose first instruction cannot be relocated. */
static __noinline s64 resident_atomic(struct mm_struct___old *mm)
{
	if (!mm) /* a kernel thread */
		return 0;
	return BPF_CORE_READ(mm, rss_stat.count[0].counter) +
	       BPF_CORE_READ(mm, rss_stat.count[1].counter) +
	       BPF_CORE_READ(mm, rss_stat.count[3].counter);
}

/* unsigned long[]: the base of per-CPU pointers on each CPU (include/asm-generic/percpu.h). Weak, because an agent that
 * may not read kernel addresses does not know its address. */
extern void __per_cpu_offset __ksym __weak;

/* Sums the part that each CPU has not yet added to the count, up to MAX_PRECISE_CPUS. */
static __noinline s64 percpu_parts(void *parts)
{
	s64 pages = 0;
	u32 cpu;

	for (cpu = 0; &__per_cpu_offset && cpu < MAX_PRECISE_CPUS && cpu < cpus_possible; cpu++) {
		unsigned long offset = 0;
		s32 part = 0;

		bpf_probe_read_kernel(&offset, sizeof(offset),
				      (void *)&__per_cpu_offset + cpu * sizeof(offset));
		bpf_probe_read_kernel(&part, sizeof(part), parts + offset);
		pages += part;
	}
	return pages;
}

/* The index must be a constant, because only then is the size of an element relocated too. */
#define PERCPU_COUNT(mm, i)                                                                        \
	(BPF_CORE_READ(mm, rss_stat[i].count) +                                                    \
	 percpu_parts(BPF_CORE_READ(mm, rss_stat[i].counters)))

static __noinline s64 resident_percpu(struct mm_struct *mm)
{
	if (!mm)
		return 0;
	return PERCPU_COUNT(mm, 0) + PERCPU_COUNT(mm, 1) + PERCPU_COUNT(mm, 3);
}

static __always_inline u64 resident(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct mm_struct___old *older = (void *)mm;
	s64 pages;

	if (bpf_core_field_exists(older->rss_stat.count))
		pages = resident_atomic(older);
	else
		pages = resident_percpu(mm);
	return pages > 0 ? pages : 0;
}

#endif
