/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Operations of workloads on the page cache. */
#ifndef TEESCOPE_CACHE_H
#define TEESCOPE_CACHE_H

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

#endif
