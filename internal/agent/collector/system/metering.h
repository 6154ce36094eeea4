/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs measure how long they run, while user space says so. */
#ifndef TEESCOPE_METERING_H
#define TEESCOPE_METERING_H

#include "slots.h"

/* How long the programs run is measured for short whiles: reading the clock takes as long as they do. How long
 * that is, is measured too and taken off. */
static __always_inline u64 meter_begin(void)
{
	return told.metering ? bpf_ktime_get_ns() : 0;
}

static __noinline int meter_end(u32 which, u64 began)
{
	u64 ended = bpf_ktime_get_ns(), clock = bpf_ktime_get_ns() - ended;
	struct cpu_state *state = this_cpu();

	/* More is an interrupt, or a hypervisor that took the CPU away. */
	if (!state || which >= METERS || ended - began > MOST_RUN_NS)
		return 0;
	state->run_times[which].runs++;
	state->run_times[which].ns += ended - began - clock;
	return 0;
}

#define METERED(which, body)                                                                       \
	({                                                                                         \
		u64 began = meter_begin();                                                         \
		body;                                                                              \
		if (began)                                                                         \
			meter_end(which, began);                                                   \
		0;                                                                                 \
	})

#endif
