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

/* Its values, which do not change. 0: not read yet. */
static u64 percpu_offsets[MAX_PRECISE_CPUS];

static __always_inline u64 percpu_offset(u32 cpu)
{
	u64 *offset = &percpu_offsets[cpu & (MAX_PRECISE_CPUS - 1)];

	if (!*offset)
		bpf_probe_read_kernel(offset, sizeof(*offset),
				      (void *)&__per_cpu_offset + cpu * sizeof(*offset));
	return *offset;
}

static __always_inline s64 part_of(u64 address)
{
	s32 part = 0;

	bpf_probe_read_kernel(&part, sizeof(part), (void *)address);
	return part;
}

/* Sums the parts of three counters that each CPU has not yet added to them, up to MAX_PRECISE_CPUS. From 6.6 on, the parts of
 * the four counters of a process are beside each other. */
static __noinline s64 percpu_parts(u64 files, u64 anonymous, u64 shared)
{
	bool together = anonymous == files + sizeof(s32) && shared == files + 3 * sizeof(s32);
	s64 pages = 0;
	u32 cpu;

	for (cpu = 0; &__per_cpu_offset && cpu < MAX_PRECISE_CPUS && cpu < cpus_possible; cpu++) {
		u64 offset = percpu_offset(cpu);
		s32 parts[4] = {};

		if (together) {
			bpf_probe_read_kernel(parts, sizeof(parts), (void *)(files + offset));
			pages += (s64)parts[0] + parts[1] + parts[3];
		} else {
			pages += part_of(files + offset) + part_of(anonymous + offset) +
				 part_of(shared + offset);
		}
	}
	return pages;
}

static __noinline s64 resident_percpu(struct mm_struct *mm)
{
	if (!mm)
		return 0;
	/* An index must be a constant, because only then is the size of an element relocated too. */
	return BPF_CORE_READ(mm, rss_stat[0].count) + BPF_CORE_READ(mm, rss_stat[1].count) +
	       BPF_CORE_READ(mm, rss_stat[3].count) +
	       percpu_parts((u64)BPF_CORE_READ(mm, rss_stat[0].counters),
			    (u64)BPF_CORE_READ(mm, rss_stat[1].counters),
			    (u64)BPF_CORE_READ(mm, rss_stat[3].counters));
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
