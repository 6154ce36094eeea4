/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Distinguishes an OCALL that left the enclave from one that a worker makes: a thread outside that takes calls from a queue,
 * while the caller waits inside (Exitless of Gramine, switchless calls of Intel's SDK). Both call the same functions.
 * The worker does so from one function of its own, whose address range user space knows from the file. */
#ifndef TEESCOPE_WORKERS_H
#define TEESCOPE_WORKERS_H

#include "boundary.h"

/* By site. Sites without an entry are not called by workers. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct worker_code);
} workers SEC(".maps");

/* Finds who called the function that begins: an enum caller, or -1 if that cannot be read. The return address is on top
 * of the stack. Its distance from the probed instruction is the same in each process. */
static __always_inline int caller_of(struct pt_regs___args *regs, u32 site)
{
	struct worker_code *code = bpf_map_lookup_elem(&workers, &site);
	u64 back = 0;

	if (!code)
		return BY_ENCLAVE;
	if (bpf_probe_read_user(&back, sizeof(back), (void *)regs->sp))
		return -1;
	return back - regs->ip - code->from < code->size ? BY_WORKER : BY_ENCLAVE;
}

#endif
