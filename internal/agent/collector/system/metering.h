/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Run times of the programs, which measure themselves while user space requests it. */
#ifndef TEESCOPE_METERING_H
#define TEESCOPE_METERING_H

#include "slots.h"

/* The programs are measured for short times only, because reading the clock takes as long as they do. The time of
 * reading the clock is measured too, and subtracted. */
static __always_inline u64 meter_begin(void)
{
	return control.metering ? bpf_ktime_get_ns() : 0;
}

static __noinline int meter_end(u32 which, u64 began)
{
	u64 ended = bpf_ktime_get_ns(), clock = bpf_ktime_get_ns() - ended;
	struct cpu_state *state = this_cpu();

	/* A longer time includes an interrupt, or the hypervisor took the CPU away. */
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
