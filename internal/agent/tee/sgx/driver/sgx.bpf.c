// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * Watches what the in-tree SGX driver does with enclaves and their pages, at its functions. It has no
 * tracepoints.
 *
 * Every hook has a program for fentry or fexit, and one for kprobe or kretprobe as a fallback. A kretprobe
 * does not see arguments, so a kprobe on the same function keeps them. All pointers are followed by copying,
 * which fails if a pointer is invalid.
 */
#include "enclaves.h"

static __always_inline bool is_error(u64 pointer)
{
	return pointer >= (u64)-4095;
}

static __always_inline struct task_struct *current_task(void)
{
	return (struct task_struct *)bpf_get_current_task();
}

static __always_inline bool by_ksgxd(void)
{
	return BPF_CORE_READ(current_task(), flags) & PF_KTHREAD;
}

static __always_inline bool is_initialized(struct sgx_encl *encl)
{
	u64 bit = bpf_core_enum_value(enum sgx_encl_flags, SGX_ENCL_INITIALIZED);

	return BPF_CORE_READ(encl, flags) >> bit & 1;
}

/* Counts pages that a request has added. The request, which the driver has just returned to its caller, contains the number of
 * measured pages and whether they are threads.
 */
static __always_inline void on_added(struct enclave *e, void *arg)
{
	u64 added = e->count[ADDED] - e->added_before, secinfo = 0;
	struct add_pages_arg request = {};

	e->added_before += added;
	if (!added || bpf_probe_read_user(&request, sizeof(request), arg))
		return;
	if (request.flags & PAGE_MEASURE)
		count(e, MEASURED, added);
	bpf_probe_read_user(&secinfo, sizeof(secinfo), (void *)request.secinfo);
	if ((secinfo & SECINFO_PAGE_TYPE) == SECINFO_TCS)
		__sync_fetch_and_add(&e->threads, added);
}

static __always_inline void on_modified(struct enclave *e, void *arg)
{
	struct modify_types_arg request = {};

	if (bpf_probe_read_user(&request, sizeof(request), arg))
		return;
	if (request.page_type == PAGE_TYPE_TCS && request.count <= e->size)
		__sync_fetch_and_add(&e->threads, request.count >> PAGE_SHIFT);
}

/* Handles the end of a request to the driver, which serves one at a time for each enclave. */
static __noinline int on_ioctl(struct file *file, u32 request, void *arg, long ret)
{
	struct sgx_encl *encl = BPF_CORE_READ(file, private_data);
	u64 now = bpf_ktime_get_ns();
	struct enclave *e;

	request &= 0xff;
	if (request == IOC_CREATE) {
		if (ret == -5) /* EIO: ECREATE itself failed */
			add_total(CREATES_FAILED, 1);
		if (ret)
			return 0;
		adopt_enclave(encl, current_task(), now);
		count(enclave_at(encl), CREATED, 1);
		return 0;
	}
	e = enclave_at(encl);
	if (!e)
		return 0;
	if (request == IOC_ADD_PAGES)
		on_added(e, arg);
	if (request == IOC_MODIFY_TYPES)
		on_modified(e, arg);
	if (request == IOC_INIT && !ret) {
		count(e, INITIALIZED, 1);
		if (e->created_ns)
			observe(STARTING, now - e->created_ns);
	}
	return 0;
}

static __always_inline int on_release(struct kref *ref)
{
	struct sgx_encl *encl = (void *)ref - bpf_core_field_offset(struct sgx_encl, refcount);

	/* The driver also has a struct sgx_encl for an open file in which no enclave was created. */
	if (BPF_CORE_READ(encl, size))
		count(enclave_at(encl), RELEASED, 1);
	return release((u64)encl);
}

/* Handles a page that goes onto the list of the reclaimer. A page that was loaded back has a version array, and is counted
 * elsewhere. Before the enclave is initialized, any other page was added. Later, it was augmented if the fault handler
 * runs. Otherwise only its type changes. */
static __always_inline int on_listed(struct sgx_epc_page *page)
{
	struct sgx_encl_page *owner = (void *)BPF_CORE_READ(page, owner);
	struct sgx_encl *encl = BPF_CORE_READ(owner, encl);
	struct enclave *e;
	struct thread *t;

	if (BPF_CORE_READ(owner, va_page))
		return 0;
	e = enclave_at(encl);
	if (!e)
		return 0;
	last_allocator = e->group;
	if (!is_initialized(encl)) {
		count(e, ADDED, 1);
		return 0;
	}
	t = this_thread(false);
	if (t && t->in_fault) {
		count(e, AUGMENTED, 1);
		follow(owner, PAGE_USED);
	}
	return 0;
}

static __always_inline int on_loaded_back(struct sgx_encl_page *page, u64 ret)
{
	struct enclave *e;
	struct thread *t;

	if (is_error(ret))
		return 0;
	e = enclave_at(BPF_CORE_READ(page, encl));
	if (!e)
		return 0;
	count(e, LOADED_BACK, 1);
	follow(page, PAGE_LOADED);
	last_allocator = e->group;
	t = this_thread(false);
	if (t)
		t->loaded = 1;
	return 0;
}

/* Used if sgx_encl_eldu cannot be hooked. */
static __always_inline int on_listed_again(struct sgx_epc_page *page)
{
	struct sgx_encl_page *owner = (void *)BPF_CORE_READ(page, owner);

	return BPF_CORE_READ(owner, va_page) ? on_loaded_back(owner, 0) : 0;
}

/* Returns the group for which a page is evicted: the group of the process that reclaims for itself. If the
 * driver's own thread refills the free pages, it is the group that took the latest page. */
static __always_inline u32 evictor(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32, *group;

	if (by_ksgxd())
		return last_allocator;
	group = bpf_map_lookup_elem(&group_of_process, &tgid);
	return group ? *group : last_allocator;
}

static __always_inline void count_pair(u32 victim, u32 by)
{
	struct eviction_key key = {victim, by};
	u64 one = 1, *n = bpf_map_lookup_elem(&evictions, &key);

	if (!n && !bpf_map_update_elem(&evictions, &key, &one, BPF_NOEXIST))
		return;
	if (!n)
		n = bpf_map_lookup_elem(&evictions, &key);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		lost(LOST_PAIRS);
}

static __always_inline int on_evict(struct sgx_epc_page *page)
{
	struct sgx_encl_page *owner = (void *)BPF_CORE_READ(page, owner);
	struct sgx_encl *encl = BPF_CORE_READ(owner, encl);
	bool secs = (void *)owner == (void *)encl + bpf_core_field_offset(struct sgx_encl, secs);
	struct enclave *e = enclave_at(encl);
	struct thread *t;

	if (!e)
		return 0;
	count(e, EVICTED, 1);
	e->ewb_attempts = 0;
	count_pair(e->group, evictor());
	if (secs)
		return 0;
	follow(owner, PAGE_EVICTED);
	add_total(WRITTEN, 1);
	t = this_thread(false);
	if (t)
		t->written = (u64)page;
	if (!bpf_core_field_exists(page->poison))
		add_total(FREED, 1); /* used without sgx_free_epc_page, before 5.17 */
	return 0;
}

/* Counts EWB. The driver tries it once, again after ETRACK, and again after it interrupted the threads. It
 * holds the enclave's lock meanwhile. */
static __always_inline int on_ewb(struct sgx_epc_page *page)
{
	struct sgx_encl_page *owner = (void *)BPF_CORE_READ(page, owner);
	struct enclave *e = enclave_at(BPF_CORE_READ(owner, encl));

	if (!e || ++e->ewb_attempts == 1)
		return 0;
	add_total(EWB_FAILED, 1);
	if (e->ewb_attempts == 2)
		add_total(ETRACK_CALLS, 1);
	return 0;
}

/* `owner` may be NULL, a page or a guest's EPC. It is compared and never followed. */
static __always_inline int on_alloc(u64 owner, u64 ret)
{
	struct enclave *e;

	if (is_error(ret))
		return 0;
	add_total(ALLOCATED, 1);
	if (!owner)
		add_total(VERSION_ARRAYS, 1);
	if (!owner || !guests)
		return 0;
	e = enclave_at((void *)owner);
	if (e && e->kind == KIND_GUEST) {
		__sync_fetch_and_add(&e->resident, 1);
		add_total(VEPC_ALLOCATED, 1);
		last_allocator = e->group;
	}
	return 0;
}

/* The reclaimer frees each page right after evicting it. All other pages are removed before they are freed. */
static __always_inline int on_free(u64 page)
{
	struct thread *t = this_thread(false);

	add_total(FREED, 1);
	if (!t || t->written != page)
		add_total(REMOVED, 1);
	else
		t->written = 0;
	return 0;
}

static __always_inline int on_reclaim(void)
{
	struct thread *t = this_thread(true);

	if (!t)
		return 0;
	t->reclaim_ns = bpf_ktime_get_ns();
	t->scanned = 0;
	return 0;
}

static __always_inline int on_reclaimed(void)
{
	struct thread *t = this_thread(false);
	bool direct = !by_ksgxd();

	add_total(direct ? BATCHES_DIRECT : BATCHES, 1);
	if (!t || !t->reclaim_ns)
		return 0;
	observe(direct ? RECLAIM_DIRECT : RECLAIM, bpf_ktime_get_ns() - t->reclaim_ns);
	t->reclaim_ns = 0;
	return 0;
}

/* Counts checks whether a page was used since the last check. The reclaimer checks once for each process that
 * maps the enclave, until one has used the page. The fault handler also checks, to clear the flag. That is not counted. */
static __always_inline int on_scan(struct sgx_encl_page *page, long used)
{
	struct thread *t = this_thread(false);
	struct enclave *e;

	if (!t || !t->reclaim_ns)
		return 0;
	e = enclave_at(BPF_CORE_READ(page, encl));
	if (t->scanned != (u64)page)
		count(e, SCANNED, 1);
	t->scanned = (u64)page;
	if ((s32)used > 0) {
		count(e, SCANNED_USED, 1);
		follow(page, PAGE_USED);
	}
	return 0;
}

static __always_inline int on_fault(struct vm_fault *fault)
{
	u64 now = bpf_ktime_get_ns(), address = BPF_CORE_READ(fault, address);
	struct thread *t = this_thread(true);

	count(enclave_at(BPF_CORE_READ(fault, vma, vm_private_data)), FAULTS, 1);
	if (!t)
		return 0;
	if (!t->fault_left_ns || t->fault_address != address || now - t->fault_left_ns > RETRY_NS) {
		t->fault_ns = now;
		t->fault_address = address;
	}
	t->in_fault = 1;
	t->loaded = 0;
	t->busy = 0;
	return 0;
}

static __always_inline int on_fault_handled(void)
{
	u64 now = bpf_ktime_get_ns();
	struct thread *t = this_thread(false);

	if (!t || !t->in_fault)
		return 0;
	t->in_fault = 0;
	t->fault_left_ns = t->busy && !t->loaded ? now : 0;
	if (t->loaded)
		observe(LOAD_BACK, now - t->fault_ns);
	return 0;
}

/* The fault handler requests a page. -EBUSY means that it is being evicted, or that no page is free. */
static __always_inline int on_load(struct sgx_encl *encl, u64 ret)
{
	struct thread *t = this_thread(false);

	if (ret != (u64)-16 || !t || !t->in_fault)
		return 0;
	t->busy = 1;
	count(enclave_at(encl), FAULTS_BUSY, 1);
	return 0;
}

static __always_inline int on_vepc_open(struct file *file, long ret)
{
	if ((s32)ret)
		return 0;
	add_total(VEPC_OPENED, 1);
	if (adopt((u64)BPF_CORE_READ(file, private_data), current_task(), KIND_GUEST,
		  bpf_ktime_get_ns()))
		__sync_fetch_and_add(&guests, 1);
	return 0;
}

static __always_inline int on_vepc_release(struct file *file)
{
	void *vepc = BPF_CORE_READ(file, private_data);
	struct enclave *e = enclave_at(vepc);

	add_total(VEPC_RELEASED, 1);
	if (e && e->kind == KIND_GUEST)
		__sync_fetch_and_add(&guests, -1);
	return release((u64)vepc);
}

static __always_inline int on_vepc_fault(void)
{
	add_total(VEPC_FAULTS, 1);
	return 0;
}

#include "hooks.h"

/* Pages that were allocated and freed. */
struct moves {
	u64 allocated;
	u64 freed;
};

static long add_moves(void *map, u32 *cpu, struct totals *t, struct moves *sum)
{
	sum->allocated += t->total[ALLOCATED];
	sum->freed += t->total[FREED];
	return 0;
}

/* Reads what only the driver's own records contain. */
static long read_enclave(void *map, u32 *key, struct enclave *e, void *ctx)
{
	struct sgx_encl *encl = (void *)e->address;
	u64 flags, pages, resident, secs;

	e->away = 0;
	if (!encl || e->kind != KIND_ENCLAVE)
		return 0;
	flags = BPF_CORE_READ(encl, flags);
	pages = BPF_CORE_READ(encl, page_cnt);
	resident = BPF_CORE_READ(encl, secs_child_cnt);
	secs = BPF_CORE_READ(encl, secs.epc_page) != NULL;
	if (e->address != (u64)encl) /* released meanwhile, so that the values are invalid */
		return 0;
	e->flags = (flags >> bpf_core_enum_value(enum sgx_encl_flags, SGX_ENCL_INITIALIZED) & 1) *
		   RECORD_INITIALIZED;
	e->flags |= (flags >> bpf_core_enum_value(enum sgx_encl_flags, SGX_ENCL_DEBUG) & 1) *
		    RECORD_DEBUG;
	e->pages = pages ? pages - 1 : 0;
	e->resident = resident;
	e->secs_resident = secs;
	e->read = 1;
	return 0;
}

/* Counts the followed pages of the working set that are not resident. */
static long count_away(void *map, struct page_key *key, struct page_use *use, u64 *since)
{
	struct enclave *e;

	if (use->resident || use->loaded_ns <= *since)
		return 0;
	e = record(use->record);
	if (e && e->id == key->id && is_followed(key->page, e->bits))
		e->away++;
	return 0;
}

/* Reads the pages of all states close together, and counts those that moved meanwhile. */
static __always_inline bool read_pages(struct moment *now)
{
	struct moves before = {}, after = {};

	bpf_for_each_map_elem(&machine, add_moves, &before, 0);
	now->read = free_pages_address &&
		    !bpf_probe_read_kernel(&now->free_pages, sizeof(now->free_pages),
					   (void *)free_pages_address);
	bpf_for_each_map_elem(&enclaves, read_enclave, NULL, 0);
	bpf_for_each_map_elem(&machine, add_moves, &after, 0);
	now->in_use = after.allocated - after.freed;
	now->moved = after.allocated - before.allocated + after.freed - before.freed;
	return now->moved == 0;
}

/* User space runs it for each scrape. */
SEC("syscall") int snapshot(void *ctx)
{
	u64 clock = bpf_ktime_get_ns(), since = clock > WORKING_SET_NS ? clock - WORKING_SET_NS : 0;
	struct moment *now;
	u32 zero = 0;

	now = bpf_map_lookup_elem(&moment, &zero);
	if (!now)
		return 0;
#pragma unroll
	for (int i = 0; i < SNAPSHOT_TRIES; i++)
		if (read_pages(now))
			break;
	bpf_for_each_map_elem(&followed, count_away, &since, 0);
	return 0;
}

/* Finds enclaves that existed before the programs: mapped ones, and ones that are being built. */
SEC("iter/task_vma") int mapped(struct bpf_iter__task_vma *ctx)
{
	struct task_struct *task = ctx->task;
	struct vm_area_struct *vma = ctx->vma;

	if (!task || !vma || !vm_ops_address || (u64)vma->vm_ops != vm_ops_address)
		return 0;
	if (vma->vm_private_data)
		adopt_enclave(vma->vm_private_data, task, 0);
	return 0;
}

SEC("iter/task_file") int opened(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct sgx_encl *encl;

	if (!task || !file || !fops_address || (u64)file->f_op != fops_address)
		return 0;
	encl = file->private_data;
	if (encl && BPF_CORE_READ(encl, size)) /* otherwise it has no enclave yet */
		adopt_enclave(encl, task, 0);
	return 0;
}

#include "guests.h"
#include "outside.h"

char LICENSE[] SEC("license") = "GPL";
