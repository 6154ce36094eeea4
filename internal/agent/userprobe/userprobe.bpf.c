// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * The user's own probes. Each program here is a template: it is loaded once for each probe, with constants that select
 * the data to read and count. The verifier removes code that a probe does not need. No code is made from the user's text.
 */
#include "userprobe.h"
#include "group.h"
#include "log2.h"
#include "program.h"

/* The constants of a probe. */
const volatile u32 probe_number;
const volatile u32 what_counts; /* enum kind */
const volatile u32 keys_used;	/* the event has keys besides its workload */
const volatile u64 most_series; /* of the probe, with keys */
const volatile u32 first_bucket;
const volatile u32 last_bucket;
const volatile u32 only_how; /* enum comparison */
const volatile s64 only_number;
const volatile struct fetch only_value;
const volatile struct fetch value;
const volatile struct fetch key_0;
const volatile struct fetch key_1;
const volatile struct fetch key_2;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct series_key);
	__type(value, struct sum);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct series_key);
	__type(value, struct distribution);
} distributions SEC(".maps");

/* Series with keys of each probe. User space subtracts those that it removes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_PROBES);
	__type(key, u32);
	__type(value, u64);
} series SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* CPUs times MAX_PROBES */
	__type(key, u32);
	__type(value, struct tally);
} tallies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct control);
} controls SEC(".maps");

struct call {
	u64 thread; /* process and thread */
	u64 probe;
};

/* When calls began. A call that never returns leaves its entry, which a newer one replaces. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* STARTED if a probe is timed */
	__type(key, struct call);
	__type(value, u64);
} started SEC(".maps");

/* Programs can preempt each other, so additions are atomic even in data of one CPU. */
#define ADD(to, n) __sync_fetch_and_add(&(to), n)

static __always_inline struct tally *this_tally(void)
{
	u32 i = bpf_get_smp_processor_id() * MAX_PROBES + probe_number;

	return bpf_map_lookup_elem(&tallies, &i);
}

/* Returns the group of the current process. */
static __noinline u32 group_of_current(void)
{
	struct task_struct *leader =
		BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader);
	struct kernfs_node *node;
	struct group_key key = {};
	u32 group;

	if (BPF_CORE_READ(leader, flags) & PF_KTHREAD)
		return BPF_CORE_READ(leader, tgid) ? GROUP_KERNEL : GROUP_IDLE;
	node = kernfs_of(leader);
	key.cgroup = BPF_CORE_READ(node, id);
	read_program(leader, (struct program_name *)key.comm);
	group = find_group(&key, node, leader);
	return group == NO_GROUP ? GROUP_OTHER : group;
}

/* Reads a value. It returns false if that is not possible. */
static __always_inline bool read(void *ctx, const volatile struct fetch *f, u64 *to)
{
	u32 size = f->size, unused_bits;
	u64 raw = 0, base = 0;
	long err = 0;

	if (size > sizeof(raw))
		return false;
	unused_bits = (64 - 8 * size) & 63;
	switch (f->origin) {
	case FROM_RECORD:
	case FROM_REGISTER:
		err = bpf_probe_read_kernel(&raw, size, ctx + f->offset);
		break;
	case FROM_MEMORY:
		err = bpf_probe_read_kernel(&base, sizeof(base), ctx + f->offset);
		if (!err)
			err = bpf_probe_read_user(&raw, size, (void *)(base + f->add));
		break;
	case FROM_CONSTANT:
		raw = f->add;
		break;
	case FROM_CPU:
		raw = bpf_get_smp_processor_id();
		break;
	}
	raw <<= unused_bits;
	raw = f->is_signed ? (u64)((s64)raw >> unused_bits) : raw >> unused_bits;
	if (f->is_error)
		raw = (s64)raw < 0 && (s64)raw >= -4095 ? -raw : 0;
	*to = raw;
	return !err;
}

static __always_inline bool counts(s64 n)
{
	switch (only_how) {
	case EQUAL:
		return n == only_number;
	case UNEQUAL:
		return n != only_number;
	case LESS:
		return n < only_number;
	case LESS_OR_EQUAL:
		return n <= only_number;
	case GREATER:
		return n > only_number;
	case GREATER_OR_EQUAL:
		return n >= only_number;
	case HAS_BIT:
		return n & only_number;
	}
	return true;
}

static __always_inline bool read_key(void *ctx, const volatile struct fetch *f,
				     struct series_key *key, u32 i)
{
	if (f->origin == FROM_COMM)
		return !bpf_get_current_comm(key->comm, sizeof(key->comm));
	return f->origin == FROM_NOTHING || read(ctx, f, &key->key[i]);
}

/* Returns the counts of a series in a map, or of those above the limit. New ones begin at zero. */
static __always_inline void *find(void *map, struct series_key *key, const void *zero,
				  struct tally *t)
{
	void *found = bpf_map_lookup_elem(map, key);
	u64 *used;
	u32 i = probe_number;

	if (found)
		return found;
	used = bpf_map_lookup_elem(&series, &i);
	if (!used)
		return NULL;
	if (keys_used) {
		struct series_key rest = {.group = key->group, .probe = key->probe, .folded = 1};

		if (ADD(*used, 1) < most_series) {
			if (!bpf_map_update_elem(map, key, zero, BPF_NOEXIST))
				return bpf_map_lookup_elem(map, key);
			ADD(*used, -1);
			found = bpf_map_lookup_elem(map, key);
			if (found) /* another CPU was first */
				return found;
		} else {
			ADD(*used, -1);
		}
		*key = rest;
		ADD(t->folded, 1);
		found = bpf_map_lookup_elem(map, key);
		if (found)
			return found;
	}
	bpf_map_update_elem(map, key, zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(map, key);
}

/* Returns the bucket of a value. Bucket i has the values up to 2^(first_bucket + i) that are above the bound of the bucket
 * before.
 */
static __always_inline u32 bucket_of_value(u64 n)
{
	u32 power = n > 1 ? log2_of(n - 1, 32) + 1 : 0;
	u32 bucket = power > first_bucket ? power - first_bucket : 0;

	if (power > last_bucket)
		bucket = last_bucket - first_bucket + 1;
	return bucket;
}

static const struct sum no_sum;
static const struct distribution no_distribution;

static __noinline int add_distribution(struct series_key *key, u64 n, struct tally *t)
{
	struct distribution *d;
	u32 bucket;

	if (!key || !t)
		return 0;
	d = find(&distributions, key, &no_distribution, t);
	if (!d) {
		ADD(t->full, 1);
		return 0;
	}
	bucket = bucket_of_value(n);
	asm volatile("" : "+r"(bucket)); /* keeps the compiler from checking a copy */
	if (bucket >= BUCKETS)
		return 0;
	ADD(d->buckets[bucket], 1);
	ADD(d->sum, n);
	ADD(d->events, 1);
	return 0;
}

static __noinline int add_sum(struct series_key *key, u64 n, struct tally *t)
{
	struct sum *s;

	if (!key || !t)
		return 0;
	s = find(&sums, key, &no_sum, t);
	if (!s) {
		ADD(t->full, 1);
		return 0;
	}
	ADD(s->sum, n);
	ADD(s->events, 1);
	return 0;
}

/* Returns the time since the current thread called the function. The caller has seen it return. */
static __always_inline bool duration(u64 *ns)
{
	struct call call = {.thread = bpf_get_current_pid_tgid(), .probe = probe_number};
	u64 *began = bpf_map_lookup_elem(&started, &call);

	if (!began)
		return false;
	*ns = bpf_ktime_get_ns() - *began;
	/* The call around this one of the same function is not timed: its beginning has been replaced. */
	bpf_map_delete_elem(&started, &call);
	return true;
}

static __always_inline void count(void *ctx, struct tally *t)
{
	struct series_key key = {};
	u64 n = 1, compared;

	if (value.origin == FROM_DURATION && !duration(&n)) {
		ADD(t->unpaired, 1);
		return;
	}
	if (only_how != ALL) {
		if (!read(ctx, &only_value, &compared)) {
			ADD(t->unread, 1);
			return;
		}
		if (!counts(compared))
			return;
	}
	if (value.origin != FROM_DURATION && what_counts != COUNT_EVENTS &&
	    !read(ctx, &value, &n)) {
		ADD(t->unread, 1);
		return;
	}
	if ((s64)n < 0) {
		ADD(t->negative, 1);
		return;
	}
	key.probe = probe_number;
	if (!read_key(ctx, &key_0, &key, 0) || !read_key(ctx, &key_1, &key, 1) ||
	    !read_key(ctx, &key_2, &key, 2)) {
		ADD(t->unread, 1);
		return;
	}
	key.group = group_of_current();
	if (what_counts == HISTOGRAM)
		add_distribution(&key, n, t);
	else
		add_sum(&key, n, t);
}

/* The programs are measured for short times only, because reading the clock takes long. The time of reading it is measured
 * too, and subtracted. */
static __always_inline u64 meter_begin(void)
{
	u32 zero = 0;
	struct control *c = bpf_map_lookup_elem(&controls, &zero);

	return c && c->metering ? bpf_ktime_get_ns() : 0;
}

static __always_inline void meter_end(struct tally *t, u64 began)
{
	u64 ended, clock;

	if (!began)
		return;
	ended = bpf_ktime_get_ns();
	clock = bpf_ktime_get_ns() - ended;
	if (ended - began > MOST_RUN_NS || ended - began < clock)
		return;
	ADD(t->runs, 1);
	ADD(t->run_ns, ended - began - clock);
}

static __always_inline int event(void *ctx)
{
	struct tally *t = this_tally();
	u64 began = meter_begin();

	if (!t)
		return 0;
	ADD(t->events, 1);
	count(ctx, t);
	meter_end(t, began);
	return 0;
}

static __always_inline int begin_call(void)
{
	struct call call = {.thread = bpf_get_current_pid_tgid(), .probe = probe_number};
	struct tally *t = this_tally();
	u64 began = meter_begin(), now;

	if (!t)
		return 0;
	ADD(t->events, 1);
	now = bpf_ktime_get_ns();
	bpf_map_update_elem(&started, &call, &now, BPF_ANY);
	meter_end(t, began);
	return 0;
}

SEC("tracepoint") int record(void *ctx)
{
	return event(ctx);
}

/* A function's entry or return, or an offset in it. */
SEC("kprobe") int function(void *ctx)
{
	return event(ctx);
}

SEC("kprobe") int function_begin(void *ctx)
{
	return begin_call();
}

SEC("uprobe.multi") int function_multi(void *ctx)
{
	return event(ctx);
}

SEC("uprobe.multi") int function_begin_multi(void *ctx)
{
	return begin_call();
}

char LICENSE[] SEC("license") = "GPL";
