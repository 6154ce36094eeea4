// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * Counts the stacks of the threads that run when a performance counter overflows.
 *
 * The stacks are stored in hash maps and not in a map of the type stack_trace (bpf_get_stackid). That type has one entry for each
 * hash. It drops or replaces a stack if the entry is taken, which often happens long before the map is full. And it cannot be
 * emptied without losing samples. Here a stack is lost only if the map is full. User space reads one generation of maps while the
 * program counts into the other.
 */
#include "profiling.h"
#include "aex.h"
#include "descent.h"

enum {
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_F_USER_STACK = 1 << 8,
};

/* include/uapi/linux/bpf_perf_event.h and arch/x86/include/uapi/asm/ptrace.h. The verifier knows these offsets. */
struct perf_context {
	u64 r15_to_bp[5];
	u64 bx;
	u64 r11;
	u64 r10_to_r8[3];
	u64 ax;
	u64 cx;
	u64 dx_to_orig_ax[4];
	u64 ip;
	u64 cs; /* its two lowest bits are the privilege level, 0 in the kernel */
	u64 after[3];
	u64 sample_period; /* events since the last sample */
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct___image {
	u64 self_exec_id; /* u64 from 5.7 */
};
#pragma clang attribute pop

/* A row for each CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, TALLY_ROW);
	__type(key, u32);
	__type(value, u64);
} tallies SEC(".maps");

/* The stack of the running sample: it is too large for the program's own. A CPU runs one such program at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct stack);
} scratch SEC(".maps");

struct stacks {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct stack_key);
	__type(value, struct stack);
} stacks_0 SEC(".maps"), stacks_1 SEC(".maps");

struct samples {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct sample_key);
	__type(value, struct sample_count);
} samples_0 SEC(".maps"), samples_1 SEC(".maps");

/*
 * The generation that is counted into. "now" has one of two arrays, whose value is the number of the generation. When user space
 * replaces the array, the kernel returns only after all programs that still use the other one have ended (maybe_wait_bpf_programs
 * in kernel/bpf/syscall.c).
 */
struct generation {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} generation_0 SEC(".maps"), generation_1 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct generation);
} now SEC(".maps") = {.values = {(void *)&generation_0}};

static __always_inline void tally(u32 what)
{
	u32 index = bpf_get_smp_processor_id() * TALLY_ROW + what;
	u64 *n = bpf_map_lookup_elem(&tallies, &index);

	if (n)
		__sync_fetch_and_add(n, 1);
}

static __always_inline u64 hash_of(struct stack *s, u32 frames)
{
	u64 hash = frames;
	u32 i;

	for (i = 0; i < FRAMES; i++) {
		if (i >= frames)
			break;
		hash = (hash ^ s->address[i]) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 32;
	}
	return hash;
}

/* Stores the stack in scratch and returns its hash. The number of its frames is 0 if there is none or no room for it. */
static __always_inline u64 store(struct stack *s, void *stacks, u32 n, u32 tgid, u16 *frames,
				 u8 *is_lost)
{
	struct stack_key key = {.tgid = tgid, .frames = n};

	*frames = 0;
	if (!n) /* a thread of the kernel has no user stack */
		return 0;
	key.hash = hash_of(s, n);
	if (!bpf_map_lookup_elem(stacks, &key) && bpf_map_update_elem(stacks, &key, s, BPF_ANY)) {
		*is_lost = 1;
		return 0;
	}
	*frames = n;
	return key.hash;
}

/* Walks a stack by frame pointers with the kernel's function, and returns the number of frames. */
static __always_inline u32 walk(void *ctx, struct stack *s, u64 flags)
{
	long bytes = bpf_get_stack(ctx, s, sizeof(*s), flags);

	return bytes < (long)sizeof(u64) ? 0 : bytes / sizeof(u64);
}

static __always_inline void count(void *samples, struct sample_key *key, u64 events)
{
	struct sample_count *have = bpf_map_lookup_elem(samples, key);

	if (!have) {
		struct sample_count none = {};

		bpf_map_update_elem(samples, key, &none, BPF_NOEXIST); /* or another CPU adds it */
		have = bpf_map_lookup_elem(samples, key);
	}
	if (!have) {
		tally(LOST_SAMPLES);
		return;
	}
	__sync_fetch_and_add(&have->samples, 1);
	__sync_fetch_and_add(&have->events, events);
}

/* Whether user space says which processes it does not want. */
const volatile bool ignores = false;

/* The processes that user space does not want. All others are sampled until user space has seen them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, IGNORED);
	__type(key, struct process_key);
	__type(value, u8);
} ignored SEC(".maps");

static __always_inline bool wanted(struct task_struct *task)
{
	struct process_key key = {};

	key.tgid = bpf_get_current_pid_tgid() >> 32;
	key.start = BPF_CORE_READ(task, group_leader, start_boottime);
	key.image = BPF_CORE_READ((struct task_struct___image *)task, self_exec_id);
	return !bpf_map_lookup_elem(&ignored, &key);
}

#include "unwind.h"

/* Writes which thread is the current one. */
static __always_inline void identify(struct sample_key *key, struct task_struct *task)
{
	u64 id = bpf_get_current_pid_tgid();

	key->tgid = id >> 32;
	key->tid = id;
	key->start = BPF_CORE_READ(task, group_leader, start_boottime);
	key->image = BPF_CORE_READ((struct task_struct___image *)task, self_exec_id);
	key->kthread = !!(BPF_CORE_READ(task, flags) & PF_KTHREAD);
	key->descendant = descends(task);
	bpf_get_current_comm(key->thread, sizeof(key->thread));
	BPF_CORE_READ_INTO(&key->process, task, group_leader, comm);
}

static __always_inline void store_user(void *ctx, void *stacks, struct sample_key *key)
{
	u32 zero = 0, n = 0;
	struct stack *s = bpf_map_lookup_elem(&scratch, &zero);
	u8 is_lost = 0;

	if (!s || key->kthread)
		return;
	if (unwinds)
		n = unwind(s, key);
	if (!n)
		n = walk(ctx, s, BPF_F_USER_STACK);
	key->user = store(s, stacks, n, key->tgid, &key->user_frames, &is_lost);
	key->stack_lost |= is_lost;
}

static __always_inline void store_kernel(void *ctx, void *stacks, struct sample_key *key)
{
	u32 zero = 0;
	struct stack *s = bpf_map_lookup_elem(&scratch, &zero);
	u8 is_lost = 0;

	if (!s)
		return;
	key->kernel = store(s, stacks, walk(ctx, s, 0), 0, &key->kernel_frames, &is_lost);
	key->stack_lost |= is_lost;
}

static __always_inline int sample(struct perf_context *ctx, void *stacks, void *samples)
{
	struct sample_key key = {};

	if (ignores && !wanted((void *)bpf_get_current_task()))
		return 0;
	identify(&key, (void *)bpf_get_current_task());
	key.in_kernel = !(ctx->cs & 3);
	if (!key.in_kernel && IS_AEX(ctx))
		key.tcs = ctx->bx;
	store_kernel(ctx, stacks, &key);
	store_user(ctx, stacks, &key);
	if (key.stack_lost)
		tally(LOST_STACKS);
	count(samples, &key, ctx->sample_period);
	return 0;
}

/* Returns the generation that is counted into. */
static __always_inline u32 current_generation(void)
{
	u32 zero = 0, *generation;
	void *current = bpf_map_lookup_elem(&now, &zero);

	if (!current)
		return 0;
	generation = bpf_map_lookup_elem(current, &zero);
	return generation ? *generation : 0;
}

SEC("perf_event")
int take_sample(struct perf_context *ctx)
{
	if (!(u32)bpf_get_current_pid_tgid()) {
		tally(IDLE);
		return 0;
	}
	tally(TAKEN);
	if (current_generation())
		return sample(ctx, &stacks_1, &samples_1);
	return sample(ctx, &stacks_0, &samples_0);
}

#include "events.h"
#include "users.h"

char LICENSE[] SEC("license") = "GPL";
