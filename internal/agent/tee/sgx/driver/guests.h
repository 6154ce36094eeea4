/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Virtual EPCs that existed before the programs. The driver does not count their pages. The pages are in an
 * xarray, whose nodes count their slots. */
#ifndef TEESCOPE_SGX_GUESTS_H
#define TEESCOPE_SGX_GUESTS_H

#include "enclaves.h"

enum {
	XA_SHIFT = 6,	     /* bits of an index in each node: 64 slots */
	XA_LEVELS = 4,	     /* above the nodes with pages: 2^30 pages */
	MAX_NODES = 1 << 20, /* with pages: 256 GiB */
};

struct walk {
	u64 root;
	u32 shift; /* of the root */
	u32 pages;
};

/* Returns the node that an entry of an xarray points to, 0 if it is not a node (include/linux/xarray.h,
 * xa_is_node). */
static __always_inline u64 node_of(u64 entry)
{
	return (entry & 3) == 2 && entry > 4096 ? entry - 2 : 0;
}

/* Adds the pages of node i, which are those from 64 i on. */
static long add_node(u32 i, struct walk *walk)
{
	u64 at = walk->root, entry;
	u32 shift = walk->shift;

	for (int level = 0; level < XA_LEVELS && at && shift; level++) {
		u64 slot = i >> (shift - XA_SHIFT) & 63;

		if (bpf_probe_read_kernel(&entry, sizeof(entry),
					  (void *)at +
						  bpf_core_field_offset(struct xa_node, slots) +
						  slot * sizeof(entry)))
			return 0;
		at = node_of(entry);
		shift -= XA_SHIFT;
	}
	if (at && !shift)
		walk->pages += BPF_CORE_READ((struct xa_node *)at, count);
	return 0;
}

static __always_inline u32 pages_of(struct sgx_vepc *vepc)
{
	u64 head = (u64)BPF_CORE_READ(vepc, page_array.xa_head);
	struct xa_node *root = (void *)node_of(head);
	struct walk walk = {.root = (u64)root};

	if (!root)
		return head != 0; /* only the first page */
	walk.shift = BPF_CORE_READ(root, shift);
	if (walk.shift % XA_SHIFT || walk.shift > XA_LEVELS * XA_SHIFT)
		return 0;
	bpf_loop(1 << walk.shift < MAX_NODES ? 1 << walk.shift : MAX_NODES, add_node, &walk, 0);
	return walk.pages;
}

/* Pages that the guest takes during the count are counted twice. */
static __always_inline void adopt_guest(struct sgx_vepc *vepc, struct task_struct *task)
{
	struct enclave *e = adopt((u64)vepc, task, KIND_GUEST, 0);

	if (!e)
		return;
	__sync_fetch_and_add(&guests, 1);
	for (int i = 0; i < 4; i++) {
		u32 before = e->resident, pages = pages_of(vepc);

		if (__sync_val_compare_and_swap(&e->resident, before, pages) == before)
			return;
	}
}

SEC("iter/task_vma") int guests_mapped(struct bpf_iter__task_vma *ctx)
{
	struct task_struct *task = ctx->task;
	struct vm_area_struct *vma = ctx->vma;

	if (task && vma && vepc_vm_ops_address && (u64)vma->vm_ops == vepc_vm_ops_address &&
	    vma->vm_private_data)
		adopt_guest(vma->vm_private_data, task);
	return 0;
}

SEC("iter/task_file") int guests_opened(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;

	if (task && file && vepc_fops_address && (u64)file->f_op == vepc_fops_address &&
	    file->private_data)
		adopt_guest(file->private_data, task);
	return 0;
}

#endif
