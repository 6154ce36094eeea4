/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The programs. Each exists for fentry or fexit, and for kprobe or kretprobe. */
#ifndef TEESCOPE_SGX_HOOKS_H
#define TEESCOPE_SGX_HOOKS_H

/* The beginning of a function. `a` is its first argument. */
#define ENTRY(function, name, body)                                                                \
	SEC("fentry/" #function) int name##_fentry(u64 *ctx)                                       \
	{                                                                                          \
		u64 a __attribute__((unused)) = ctx[0];                                            \
		return body;                                                                       \
	}                                                                                          \
	SEC("kprobe/" #function) int name##_kprobe(struct pt_regs *ctx)                            \
	{                                                                                          \
		u64 a __attribute__((unused)) = ctx->di;                                           \
		return body;                                                                       \
	}

/* The beginning of a function without arguments. */
#define ENTRY0(function, name, body)                                                               \
	SEC("fentry/" #function) int name##_fentry(u64 *ctx)                                       \
	{                                                                                          \
		return body;                                                                       \
	}                                                                                          \
	SEC("kprobe/" #function) int name##_kprobe(struct pt_regs *ctx)                            \
	{                                                                                          \
		return body;                                                                       \
	}

/* The return of a function whose result and arguments are not used. */
#define RETURN0(function, name, body)                                                              \
	SEC("fexit/" #function) int name##_fexit(u64 *ctx)                                         \
	{                                                                                          \
		return body;                                                                       \
	}                                                                                          \
	SEC("kretprobe/" #function) int name##_kretprobe(struct pt_regs *ctx)                      \
	{                                                                                          \
		return body;                                                                       \
	}

/* The return of a function of `n` arguments with `ret`. `a` is the argument at `at`. A kretprobe does not see it, so a
 * kprobe stores it in the field `kept` of the thread. */
#define RETURN(function, name, n, at, reg, kept, body)                                             \
	SEC("fexit/" #function) int name##_fexit(u64 *ctx)                                         \
	{                                                                                          \
		u64 a = ctx[at], ret = ctx[n];                                                     \
		return body;                                                                       \
	}                                                                                          \
	SEC("kprobe/" #function) int name##_args(struct pt_regs *ctx)                              \
	{                                                                                          \
		struct thread *t = this_thread(true);                                              \
		if (t)                                                                             \
			t->kept = ctx->reg;                                                        \
		return 0;                                                                          \
	}                                                                                          \
	SEC("kretprobe/" #function) int name##_kretprobe(struct pt_regs *ctx)                      \
	{                                                                                          \
		struct thread *t = this_thread(false);                                             \
		u64 a, ret = ctx->ax;                                                              \
		if (!t)                                                                            \
			return 0;                                                                  \
		a = t->kept;                                                                       \
		return body;                                                                       \
	}

ENTRY(sgx_encl_release, release, on_release((void *)a))
ENTRY(sgx_mark_page_reclaimable, listed, on_listed((void *)a))
ENTRY(sgx_mark_page_reclaimable, listed_again, on_listed_again((void *)a))
ENTRY(sgx_encl_ewb, evict, on_evict((void *)a))
ENTRY(__sgx_encl_ewb, ewb, on_ewb((void *)a))
ENTRY(sgx_vma_fault, fault, on_fault((void *)a))
ENTRY(sgx_free_epc_page, free, on_free(a))
ENTRY0(sgx_reclaim_pages, reclaim, on_reclaim())
RETURN0(sgx_reclaim_pages, reclaimed, on_reclaimed())
RETURN0(sgx_vma_fault, fault_handled, on_fault_handled())
RETURN(sgx_encl_eldu, load_back, 2, 0, di, load_back, on_loaded_back((void *)a, ret))
RETURN(sgx_alloc_epc_page, alloc, 2, 0, di, alloc, on_alloc(a, ret))
RETURN(__sgx_encl_load_page, load, 2, 0, di, load, on_load((void *)a, ret))
RETURN(sgx_encl_load_page, load_older, 3, 0, di, load, on_load((void *)a, ret))
RETURN(sgx_encl_test_and_clear_young, scan, 2, 1, si, scan, on_scan((void *)a, ret))
RETURN(sgx_vepc_open, vepc_open, 2, 1, si, vepc, on_vepc_open((void *)a, ret))

/* The first argument is the inode, and the second one the file. */
SEC("fentry/sgx_vepc_release") int vepc_release_fentry(u64 *ctx)
{
	return on_vepc_release((void *)ctx[1]);
}

SEC("kprobe/sgx_vepc_release") int vepc_release_kprobe(struct pt_regs *ctx)
{
	return on_vepc_release((void *)ctx->si);
}

ENTRY0(sgx_vepc_fault, vepc_fault, on_vepc_fault())

SEC("fexit/sgx_ioctl") int ioctl_fexit(u64 *ctx)
{
	return on_ioctl((void *)ctx[0], ctx[1], (void *)ctx[2], ctx[3]);
}

SEC("kprobe/sgx_ioctl") int ioctl_args(struct pt_regs *ctx)
{
	struct thread *t = this_thread(true);

	if (!t)
		return 0;
	t->ioctl[0] = ctx->di;
	t->ioctl[1] = ctx->si;
	t->ioctl[2] = ctx->dx;
	return 0;
}

SEC("kretprobe/sgx_ioctl") int ioctl_kretprobe(struct pt_regs *ctx)
{
	struct thread *t = this_thread(false);

	return t ? on_ioctl((void *)t->ioctl[0], t->ioctl[1], (void *)t->ioctl[2], ctx->ax) : 0;
}

#endif
