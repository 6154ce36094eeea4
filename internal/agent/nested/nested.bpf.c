// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * Times calls of functions in each other, by probes at their entries and returns.
 *
 * Each thread has a stack of its unfinished calls. A return belongs to the call with the same stack pointer. So a call that ends
 * without a return, for instance by longjmp, is detected. The time of probes would count as time of the functions. User space
 * measures it first, and the programs subtract it.
 *
 * A call that has not returned counts in totals up to the last event of its thread. So the time of the calls within is not more
 * than its own.
 */
#include "nested.h"
#include "descent.h"
#include "log2.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___image {
	u64 self_exec_id; /* u64 from 5.7 */
};

struct pt_regs___stack {
	unsigned long sp;
};

struct xol_area {
	unsigned long vaddr;
};

struct uprobes_state___area {
	struct xol_area *xol_area;
};

struct mm_struct___probes {
	struct uprobes_state___area uprobes_state;
};

struct task_struct___probes {
	struct mm_struct___probes *mm;
};
#pragma clang attribute pop

/* The process that is timed besides the descendants of the ancestor, or 0. */
const volatile u32 process = 0;
const volatile struct cost costs[KINDS];

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, THREADS);
	__type(key, u64);
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_FUNCTIONS);
	__type(key, u32);
	__type(value, struct function);
} functions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lost);
} losses SEC(".maps");

#define ADD(to, n) __sync_fetch_and_add(&(to), n)

static __always_inline struct lost *all_lost(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&losses, &zero);
}

#define LOST(kind)                                                                                 \
	do {                                                                                       \
		struct lost *lost = all_lost();                                                    \
		if (lost)                                                                          \
			ADD(lost->kind, 1);                                                        \
	} while (0)

static const struct thread no_thread;

/* Reports whether user space has stopped the measurement. The probes are detached one by one. Without this flag, a function could
 * be seen to return whose inner calls are no longer seen.
 */
static __always_inline bool stopped(void)
{
	struct lost *lost = all_lost();

	return !lost || lost->stopped;
}

/* Returns the frame at an index. */
static __always_inline struct frame *frame_at(struct thread *t, u64 index)
{
	asm volatile("" : "+r"(index)); /* keeps the compiler from checking a copy */
	return &t->frames[index & (MAX_DEPTH - 1)];
}

static __always_inline u64 less(u64 from, u64 what)
{
	return from > what ? from - what : 0;
}

/* Reports whether the function of the frame at an index is also in an outer frame. */
static __always_inline bool within_itself(struct thread *t, u64 index, u64 function)
{
	u64 i;

	for (i = 0; i < MAX_DEPTH; i++) {
		if (i >= index)
			return false;
		if (frame_at(t, i)->function == function)
			return true;
	}
	return false;
}

/* Adds the time of a call that does not return, up to the last event of its thread. */
static __always_inline void abandon(struct thread *t, u64 index)
{
	struct frame *f = frame_at(t, index), *outer;
	u32 key = f->function;
	struct function *to = bpf_map_lookup_elem(&functions, &key);
	u64 ns = less(less(t->last, f->began), f->probes_ns);

	if (!to)
		return;
	ns = ns > f->inner_ns ? ns : f->inner_ns;
	ADD(to->own_ns, ns - f->inner_ns);
	if (!index) {
		ADD(to->left_ns, ns);
		return;
	}
	outer = frame_at(t, index - 1);
	outer->inner_ns += ns;
	outer->probes_ns += f->probes_ns;
	if (!within_itself(t, index, key))
		ADD(to->left_ns, ns);
}

/* Drops the calls whose stack is no longer in use: unfinished calls have theirs at or above `stack`. */
static __always_inline void unwind(struct thread *t, u64 stack)
{
	int i;

	for (i = 0; i < MAX_DEPTH; i++) {
		u64 top = t->depth - 1;

		if (top >= MAX_DEPTH || frame_at(t, top)->stack >= stack)
			return;
		t->depth = top;
		abandon(t, top);
		LOST(unwound);
	}
}

/* Reports whether calls of the thread that runs are timed. */
static __always_inline bool is_timed(struct task_struct *task)
{
	return bpf_get_current_pid_tgid() >> 32 == process || descends(task);
}

/* Returns the thread that runs. It is NULL if the thread has not called the root, unless it does now. */
static __always_inline struct thread *this_thread(bool at_root)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u64 id = bpf_get_current_pid_tgid(), start, image;
	struct thread *t = bpf_map_lookup_elem(&threads, &id);

	if (!t && !at_root)
		return NULL;
	start = BPF_CORE_READ(task, start_boottime);
	image = BPF_CORE_READ((struct task_struct___image *)task, self_exec_id);
	if (!t) {
		if (!is_timed(task))
			return NULL;
		bpf_map_update_elem(&threads, &id, &no_thread, BPF_NOEXIST);
		t = bpf_map_lookup_elem(&threads, &id);
		if (!t)
			return NULL;
	}
	if (t->start != start || t->image != image) {
		unwind(t, ~0ULL);
		t->start = start;
		t->image = image;
		t->depth = 0;
	}
	return t;
}

/* Reports whether the return address of the current call has been replaced: a function that ends by a jump to this one has
 * left its own return address. The kernel's one is at the beginning of the page for probes that a process has (struct xol_area in
 * kernel/events/uprobes.c). */
static __always_inline bool after_jump(u64 stack)
{
	struct task_struct___probes *task = (void *)bpf_get_current_task();
	struct xol_area *area = BPF_CORE_READ(task, mm, uprobes_state.xol_area);
	u64 address, page = 0;

	if (area && bpf_core_field_exists(area->vaddr))
		page = BPF_CORE_READ(area, vaddr);
	return page && !bpf_probe_read_user(&address, sizeof(address), (void *)stack) &&
	       address == page;
}

static __always_inline int enter(struct pt_regs___stack *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx), stack = ctx->sp, depth;
	u64 function = cookie & (MAX_FUNCTIONS - 1);
	struct thread *t;
	struct frame *f;

	if (stopped())
		return 0;
	t = this_thread(function == 0);
	if (!t)
		return 0;
	unwind(t, after_jump(stack) ? stack : stack + 1);
	depth = t->depth;
	if (!depth && function)
		return 0;
	if (depth >= MAX_DEPTH) {
		LOST(deep);
		return 0;
	}
	f = frame_at(t, depth);
	f->stack = stack;
	f->function = function;
	f->kind = cookie / MAX_FUNCTIONS;
	f->inner_ns = 0;
	f->probes_ns = 0;
	t->depth = depth + 1;
	f->began = t->last = bpf_ktime_get_ns();
	return 0;
}

/* Returns the bucket of a time: 8 for each power of two, and one for each of the first 8 nanoseconds. */
static __always_inline u32 bucket_of_time(u64 ns)
{
	u32 log = log2_of(ns, 32), bucket;

	if (log < FRACTION_BITS)
		return ns;
	bucket = ((log - FRACTION_BITS + 1) << FRACTION_BITS) +
		 ((ns >> (log - FRACTION_BITS)) & ((1 << FRACTION_BITS) - 1));
	return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static __always_inline void finish(struct thread *t, u64 index, u64 now)
{
	struct frame *f = frame_at(t, index), *outer = NULL;
	u64 raw = now - f->began, ns, probes, parent;
	u32 key = f->function, bucket;
	u64 function = key & (MAX_FUNCTIONS - 1), kind = f->kind & (KINDS - 1);
	struct function *to = bpf_map_lookup_elem(&functions, &key);

	if (!to)
		return;
	probes = costs[kind].inside + f->probes_ns;
	ns = less(raw, probes);
	ns = ns > f->inner_ns ? ns : f->inner_ns; /* more may be subtracted than the probes took */
	ADD(to->calls, 1);
	ADD(to->own_ns, ns - f->inner_ns);
	if (index) {
		outer = frame_at(t, index - 1);
		outer->inner_ns += ns;
		outer->probes_ns += costs[kind].whole + f->probes_ns;
	}
	if (within_itself(t, index, function))
		return;
	ADD(to->outermost, 1);
	ADD(to->ns, ns);
	ADD(to->probes_ns, raw - ns);
	bucket = bucket_of_time(ns);
	asm volatile("" : "+r"(bucket)); /* keeps the compiler from checking a copy */
	if (bucket < BUCKETS)
		ADD(to->buckets[bucket], 1);
	if (!outer)
		return;
	parent = outer->function;
	asm volatile("" : "+r"(parent));
	if (parent >= MAX_FUNCTIONS)
		return;
	ADD(to->parent_calls[parent], 1);
	ADD(to->parent_ns[parent], ns);
}

static __always_inline int leave(struct pt_regs___stack *ctx)
{
	u64 now = bpf_ktime_get_ns(), top;
	u64 function = bpf_get_attach_cookie(ctx) & (MAX_FUNCTIONS - 1);
	u64 stack = ctx->sp - sizeof(u64); /* as it was at the entry */
	struct thread *t;
	struct frame *f;

	if (stopped())
		return 0;
	t = this_thread(false);
	if (!t) { /* the map has evicted the thread, or the thread is that of a child by fork */
		if (!function && is_timed((void *)bpf_get_current_task()))
			LOST(unpaired);
		return 0;
	}
	if (!t->depth)
		return 0;
	unwind(t, stack);
	top = t->depth - 1;
	if (top >= MAX_DEPTH)
		return 0;
	f = frame_at(t, top);
	if (f->stack != stack || f->function != function) {
		LOST(unpaired);
		return 0;
	}
	t->depth = top;
	t->last = now;
	finish(t, top, now);
	return 0;
}

SEC("kprobe") int function_begins(void *ctx)
{
	return enter(ctx);
}

SEC("uprobe.multi") int function_begins_multi(void *ctx)
{
	return enter(ctx);
}

SEC("kprobe") int function_returns(void *ctx)
{
	return leave(ctx);
}

SEC("uprobe.multi") int function_returns_multi(void *ctx)
{
	return leave(ctx);
}

char LICENSE[] SEC("license") = "GPL";
