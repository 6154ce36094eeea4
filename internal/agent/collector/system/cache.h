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

static __always_inline int on_frequent_cache(u32 op, u64 n)
{
	return open_now() ? on_cache(op, n) : 0;
}

#endif
