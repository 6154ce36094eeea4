/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Finds the processes that map a file, as the kernel does when it attaches probes: in the tree of the file's mappings
 * (build_map_info in kernel/events/uprobes.c). The tree is read without a lock, so no process can delay this. If the tree changes
 * meanwhile, the answer is an error or differs from that of the next time.
 */
#ifndef TEESCOPE_USERS_H
#define TEESCOPE_USERS_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rb_node {
	unsigned long __rb_parent_color; /* the lowest bit is the colour */
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
};

struct address_space {
	struct rb_root_cached i_mmap;
};

struct file {
	struct address_space *f_mapping;
};

struct mm_struct___owned {
	struct atomic mm_users;
	struct task_struct *owner; /* with CONFIG_MEMCG */
};

struct vm_area_struct {
	struct {
		struct rb_node rb;
	} shared;
	struct mm_struct___owned *vm_mm;
	struct file *vm_file;
};

#pragma clang attribute pop

/* An address of the process that runs mapped_by, and the answer: an error, the number of processes, and their IDs. A process may
 * be there several times, and the one that asks is not. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, USERS_ROW);
	__type(key, u32);
	__type(value, u64);
} file_users SEC(".maps");

static __always_inline void answer(u32 index, u64 value)
{
	u64 *to = bpf_map_lookup_elem(&file_users, &index);

	if (to)
		*to = value;
}

/* A walk through the nodes of a tree in order. */
struct tree_walk {
	struct address_space *mapping;
	struct mm_struct___owned *own;
	struct rb_node *at;
	struct rb_node *from;
	u32 up;	  /* from is a child of at, and not its parent */
	u32 last; /* process */
	u32 n;
	u32 seen_own;
	s32 error;
};

/* Adds the process of a mapping. */
static __always_inline s32 add_user(struct tree_walk *w, struct rb_node *node)
{
	struct vm_area_struct *area =
		(void *)node - bpf_core_field_offset(struct vm_area_struct, shared.rb);
	struct address_space *mapping = NULL;
	struct mm_struct___owned *mm = NULL;
	struct task_struct *owner = NULL;
	struct file *file = NULL;
	int users = 0;
	u32 tgid = 0;

	if (bpf_core_read(&file, sizeof(file), &area->vm_file) ||
	    bpf_core_read(&mapping, sizeof(mapping), &file->f_mapping) || mapping != w->mapping ||
	    bpf_core_read(&mm, sizeof(mm), &area->vm_mm) ||
	    bpf_core_read(&users, sizeof(users), &mm->mm_users))
		return USERS_CHANGED;
	if (mm == w->own) {
		w->seen_own = 1;
		return 0;
	}
	if (!users) /* the kernel ignores it too */
		return 0;
	if (!bpf_core_field_exists(mm->owner))
		return USERS_UNKNOWN;
	/* A process that ends has no owner any more. Others may still hold its memory. */
	if (bpf_core_read(&owner, sizeof(owner), &mm->owner) || !owner ||
	    bpf_core_read(&tgid, sizeof(tgid), &owner->tgid) || !tgid)
		return USERS_CHANGED;
	if (tgid == w->last)
		return 0;
	if (USERS_FIRST + w->n >= USERS_ROW)
		return USERS_MANY;
	answer(USERS_FIRST + w->n, tgid);
	w->last = tgid;
	w->n++;
	return 0;
}

static long walk_users(u32 index, struct tree_walk *w)
{
	struct rb_node *parent, *right, *left, *node = w->at, *next;
	bool visit = false;
	struct {
		unsigned long parent;
		void *right, *left;
	} is = {};

	if (!node)
		return 1;
	if (bpf_probe_read_kernel(&is, sizeof(is), node)) {
		w->error = USERS_CHANGED;
		return 1;
	}
	parent = (void *)(is.parent & ~3UL);
	right = is.right;
	left = is.left;
	/* A rotation can make the parent a child. Then the walk would skip nodes. */
	if (!w->up && w->from == parent) {
		visit = !left;
		next = left;
	} else if (w->up && w->from == left) {
		visit = true;
		next = NULL;
	} else if (w->up && w->from == right) {
		next = parent;
	} else {
		w->error = USERS_CHANGED;
		return 1;
	}
	if (visit) {
		w->error = add_user(w, node);
		if (w->error)
			return 1;
		next = right ? right : parent;
	}
	w->up = next == parent;
	w->from = node;
	w->at = next;
	return 0;
}

static long begin_users(struct task_struct *task, struct vm_area_struct *area, void *ctx)
{
	struct tree_walk *w = ctx;

	w->mapping = BPF_CORE_READ(area, vm_file, f_mapping);
	w->own = BPF_CORE_READ(area, vm_mm);
	return 0;
}

/* User space runs this. */
SEC("raw_tp") int mapped_by(void *ctx)
{
	u32 question = USERS_ADDRESS;
	u64 *address = bpf_map_lookup_elem(&file_users, &question);
	struct address_space *mapping;
	struct tree_walk w = {};
	long error;

	if (!address)
		return 0;
	error = bpf_find_vma(bpf_get_current_task_btf(), *address, begin_users, &w, 0);
	mapping = w.mapping;
	if (!error && mapping) {
		w.at = BPF_CORE_READ(mapping, i_mmap.rb_root.rb_node);
		bpf_loop(USERS_STEPS, walk_users, &w, 0);
		error = w.error;
		if (!error && w.at)
			error = USERS_MANY;
		else if (!error && !w.seen_own)
			error = USERS_CHANGED;
	} else if (!error) {
		error = USERS_UNKNOWN;
	}
	answer(USERS_ERROR, error);
	answer(USERS_N, w.n);
	return 0;
}

#endif
