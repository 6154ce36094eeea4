/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The maps, the assignment of records and groups to enclaves, and counting for them. */
#ifndef TEESCOPE_SGX_ENCLAVES_H
#define TEESCOPE_SGX_ENCLAVES_H

#include "sgx.h"
#include "group.h"
#include "log2.h"
#include "lost.h"
#include "program.h"
#include "sgx_driver.h"

/* Addresses of the driver's variables, 0 if unknown. */
const volatile u64 free_pages_address = 0;  /* sgx_nr_free_pages, atomic_long_t from 5.15 */
const volatile u64 vm_ops_address = 0;	    /* sgx_vm_ops */
const volatile u64 fops_address = 0;	    /* sgx_encl_fops */
const volatile u64 vepc_vm_ops_address = 0; /* sgx_vepc_vm_ops */
const volatile u64 vepc_fops_address = 0;   /* sgx_vepc_fops */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* CPUs */
	__type(key, u32);
	__type(value, struct totals);
} machine SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_RECORDS);
	__type(key, u32);
	__type(value, struct enclave);
} enclaves SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* groups_max */
	__type(key, u32);
	__type(value, struct group_use);
} group_uses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct moment);
} moment SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_RECORDS);
	__type(key, u64); /* address of struct sgx_encl or sgx_vepc */
	__type(value, u32);
} record_of SEC(".maps");

/* The group for which a process has created enclaves, to attribute direct reclaims. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_RECORDS);
	__type(key, u32); /* tgid */
	__type(value, u32);
} group_of_process SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, MAX_RECORDS);
	__type(value, u32);
} free_records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, EVICTIONS);
	__type(key, struct eviction_key);
	__type(value, u64);
} evictions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, THREADS);
	__type(key, u32); /* thread ID */
	__type(value, struct thread);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FOLLOWED_MOST);
	__type(key, struct page_key);
	__type(value, struct page_use);
} followed SEC(".maps");

u32 last_id = 0;	/* identifies enclaves */
u32 last_allocator = 0; /* the group that took the latest page */
u32 guests = 0;		/* open virtual EPCs */

static __always_inline struct totals *this_cpu(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&machine, &cpu);
}

/* Programs can preempt each other, so additions are atomic even in data that only this CPU writes. */
static __always_inline void add_total(u32 what, u64 n)
{
	struct totals *t = this_cpu();

	if (t && what < TOTALS)
		__sync_fetch_and_add(&t->total[what], n);
}

static __always_inline void observe(u32 which, u64 ns)
{
	struct totals *t = this_cpu();
	u32 bucket = ns >> BUCKET_SHIFT ? log2_of(ns, 32) - BUCKET_SHIFT + 1 : 0;

	if (!t || which >= HISTOGRAMS)
		return;
	if (bucket >= BUCKETS)
		bucket = BUCKETS - 1;
	__sync_fetch_and_add(&t->times[which].bucket[bucket], 1);
	__sync_fetch_and_add(&t->times[which].sum_ns, ns);
}

static __always_inline struct enclave *record(u32 i)
{
	return bpf_map_lookup_elem(&enclaves, &i);
}

/* Returns the record of an enclave, or the shared record of all enclaves without one. */
static __always_inline struct enclave *enclave_at(const void *address)
{
	u64 key = (u64)address;
	u32 *i = bpf_map_lookup_elem(&record_of, &key);

	return record(i ? *i : NO_ENCLAVE);
}

static __always_inline void count(struct enclave *e, u32 what, u64 n)
{
	struct totals *t = this_cpu();
	struct group_use *g;
	u32 group;

	if (!e || what >= COUNTS)
		return;
	if (t)
		__sync_fetch_and_add(&t->count[what], n);
	__sync_fetch_and_add(&e->count[what], n);
	group = e->group;
	g = bpf_map_lookup_elem(&group_uses, &group);
	if (g)
		__sync_fetch_and_add(&g->count[what], n);
}

/* Returns the group of a process, by its current program and cgroup. */
static __noinline u32 group_of_task(struct task_struct *leader)
{
	struct kernfs_node *node = kernfs_of(leader);
	struct group_key key = {.cgroup = BPF_CORE_READ(node, id)};
	u32 group;

	read_program(leader, (struct program_name *)key.comm);
	group = find_group(&key, node, leader);
	if (group != NO_GROUP)
		return group;
	lost(LOST_GROUPS);
	return GROUP_OTHER;
}

static __always_inline void forget(struct enclave *e)
{
	__builtin_memset(e, 0, sizeof(*e));
}

/* How many bits of the hash of a followed page are zero. */
static __always_inline u32 hash_bits(u64 pages)
{
	return pages > FOLLOWED_PAGES ? log2_of((pages - 1) / FOLLOWED_PAGES, 32) + 1 : 0;
}

/* Multiplicative hashing (Knuth): the upper bits of the product spread neighbouring pages evenly. */
static __always_inline bool is_followed(u32 page, u32 bits)
{
	return !bits || (bits < 32 && (page * 2654435761u) >> (32 - bits) == 0);
}

enum page_event {
	PAGE_LOADED, /* back */
	PAGE_EVICTED,
	PAGE_USED, /* as the reclaimer or a fault has seen */
};

/* Follows a page of the working set. A SECS is outside the range of addresses. */
static __noinline int follow(struct sgx_encl_page *page, u32 event)
{
	struct sgx_encl *encl = BPF_CORE_READ(page, encl);
	u64 address = (u64)encl, offset;
	u32 *number = bpf_map_lookup_elem(&record_of, &address), bits;
	struct page_use new = {}, *use;
	struct page_key key = {};
	struct enclave *e = number ? record(*number) : NULL;

	if (!e || !e->id)
		return 0;
	offset = (BPF_CORE_READ(page, desc) & ~((1ULL << PAGE_SHIFT) - 1)) - e->base;
	if (offset >= e->size)
		return 0;
	bits = hash_bits(BPF_CORE_READ(encl, page_cnt));
	if (bits > e->bits) /* the enclave has grown: fewer pages are followed */
		e->bits = bits;
	key.page = offset >> PAGE_SHIFT;
	if (!is_followed(key.page, e->bits))
		return 0;
	key.id = e->id;
	use = bpf_map_lookup_elem(&followed, &key);
	if (!use && event != PAGE_EVICTED) {
		new.record = *number;
		bpf_map_update_elem(&followed, &key, &new, BPF_NOEXIST);
		use = bpf_map_lookup_elem(&followed, &key);
	}
	if (!use)
		return 0;
	if (event == PAGE_LOADED && use->used)
		use->loaded_ns = bpf_ktime_get_ns();
	use->resident = event != PAGE_EVICTED;
	if (event != PAGE_EVICTED)
		use->used = 1;
	return 0;
}

/* Gives a record to an enclave that a process has just created, or that was found. */
static __noinline struct enclave *adopt(u64 address, struct task_struct *task, u32 kind, u64 now)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	u32 i, group = group_of_task(leader), tgid = BPF_CORE_READ(task, tgid);
	struct group_use *g = bpf_map_lookup_elem(&group_uses, &group);
	struct enclave *e;

	if (bpf_map_pop_elem(&free_records, &i)) {
		lost(LOST_ENCLAVES);
		return NULL;
	}
	e = record(i);
	if (!e)
		return NULL;
	forget(e);
	e->created_ns = now;
	e->kind = kind;
	e->group = group;
	e->tgid = tgid;
	if (bpf_map_update_elem(&record_of, &address, &i, BPF_NOEXIST)) {
		bpf_map_push_elem(&free_records, &i, 0);
		return NULL;
	}
	e->id = __sync_fetch_and_add(&last_id, 1) + 1;
	e->address = address;
	if (g)
		__sync_fetch_and_add(&g->enclaves, 1);
	bpf_map_update_elem(&group_of_process, &tgid, &group, BPF_ANY);
	return e;
}

static __always_inline struct enclave *adopt_enclave(struct sgx_encl *encl,
						     struct task_struct *task, u64 now)
{
	struct enclave *e = adopt((u64)encl, task, KIND_ENCLAVE, now);

	if (e) {
		e->base = BPF_CORE_READ(encl, base);
		e->size = BPF_CORE_READ(encl, size);
	}
	return e;
}

/* Frees the record. */
static __noinline int release(u64 address)
{
	u32 *known = bpf_map_lookup_elem(&record_of, &address), i;
	struct enclave *e;
	struct group_use *g;

	if (!known)
		return 0;
	i = *known;
	e = record(i);
	if (!e || bpf_map_delete_elem(&record_of, &address))
		return 0;
	g = bpf_map_lookup_elem(&group_uses, &e->group);
	if (g)
		__sync_fetch_and_add(&g->enclaves, -1);
	forget(e);
	bpf_map_push_elem(&free_records, &i, 0);
	return 0;
}

/* Returns the state of the running thread, and creates it on request. */
static __always_inline struct thread *this_thread(bool make)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct thread *t = bpf_map_lookup_elem(&threads, &tid), fresh = {};

	if (t || !make)
		return t;
	bpf_map_update_elem(&threads, &tid, &fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&threads, &tid);
}

#endif
