/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Operations of workloads on the page cache. */
#ifndef TEESCOPE_CACHE_H
#define TEESCOPE_CACHE_H

#include "filemap.h"
#include "slots.h"

static __always_inline int on_cache(u32 op, u64 n)
{
	struct row *row = row_of(this_cpu());

	if (row)
		row->cache[op] += n;
	return 0;
}

/* Returns the number of pages of a folio, and 1 for a page of a kernel without folios. */
static __always_inline u64 pages_of(void *folio)
{
	unsigned long flags;
	u64 pages = 1;

	if (bpf_core_field_exists(((struct folio___memdesc *)0)->flags.f))
		flags = BPF_CORE_READ((struct folio___memdesc *)folio, flags.f);
	else if (bpf_core_field_exists(((struct folio *)0)->flags))
		flags = BPF_CORE_READ((struct folio *)folio, flags);
	else
		return 1;
	if (!(flags & 1UL << bpf_core_enum_value(enum pageflags, PG_head)))
		return 1;
	if (bpf_core_field_exists(((struct folio___nr *)0)->_nr_pages))
		pages = BPF_CORE_READ((struct folio___nr *)folio, _nr_pages);
	else if (bpf_core_field_exists(((struct folio *)0)->_folio_nr_pages))
		pages = BPF_CORE_READ((struct folio *)folio, _folio_nr_pages);
	return pages;
}

static __always_inline int on_frequent_cache(u32 op, u64 n)
{
	return open_now() ? on_cache(op, n) : 0;
}

/* The last step of a read that gets its pages in several steps. */
struct read_step {
	u64 call; /* how many calls of the thread had read before */
	u64 mapping;
	u64 first;
	u64 last;
};

/* Only for threads that have read several pages at once. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct read_step);
} reads SEC(".maps");

/* Reports whether a read that was counted gets more of its pages. The kernel (filemap_get_pages) gets 15 to 31 folios at a
 * time, or less, and each time has the range from the next page to the end of the read. */
static __always_inline bool continues(struct address_space *mapping, u64 first, u64 last)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct read_step now = {.mapping = (u64)mapping, .first = first, .last = last}, *its;
	bool same;

	its = bpf_task_storage_get(&reads, task, NULL,
				   first < last ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (!its)
		return false;
	if (bpf_core_field_exists(task->ioac.syscr))
		now.call = task->ioac.syscr;
	same = its->call == now.call && its->mapping == now.mapping && its->last == last &&
	       its->first < first;
	*its = now;
	return same;
}

/* Counts the pages of a read from the first to the last, or to the end of the file. */
static __always_inline int on_get_pages(struct address_space *mapping, u64 first, u64 last)
{
	s64 size;

	if (!open_now() || continues(mapping, first, last))
		return 0;
	size = mapping->host->i_size;
	if (size <= 0)
		return 0;
	if (last > (u64)(size - 1) >> PAGE_SHIFT)
		last = (u64)(size - 1) >> PAGE_SHIFT;
	return first <= last ? on_cache(CACHE_ACCESS, last - first + 1) : 0;
}

/* The same at the beginning of a read, on kernels without the tracepoint. */
static __always_inline int on_read(struct kiocb *call, struct iov_iter *to)
{
	s64 from, to_byte, size;

	if (!open_now())
		return 0;
	from = BPF_CORE_READ(call, ki_pos);
	to_byte = from + BPF_CORE_READ(to, count);
	size = BPF_CORE_READ(call, ki_filp, f_mapping, host, i_size);
	if (to_byte > size)
		to_byte = size;
	if (from < 0 || to_byte <= from)
		return 0;
	return on_cache(CACHE_ACCESS,
			((u64)(to_byte - 1) >> PAGE_SHIFT) - ((u64)from >> PAGE_SHIFT) + 1);
}

#endif
