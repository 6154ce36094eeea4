// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * Counts calls into and out of enclaves by probes on functions of the untrusted runtime, and measures their
 * durations in watched processes. Reads the last values of the counters that Gramine keeps for each of its
 * threads.
 *
 * A probe costs its program a microsecond, so this file prefers clarity to speed: one shared hash by process,
 * site and argument. User space opens and closes a gate for each probed file. So it knows exactly the interval
 * to which counts belong, however long attaching takes.
 */
#include "kernel.h"
#include "boundary.h"
#include "lost.h"
#include "workers.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, MAX_FILES);
	__type(key, u32);
	__type(value, struct file_state);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, PLACES_CALLS);
	__type(key, struct call_key);
	__type(value, u64);
} calls SEC(".maps");

/* Processes whose calls are timed. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u8);
} watched SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct table_key);
	__type(value, u64);
} tables SEC(".maps");

/* How often an entry was added to tables: user space reads these when that has changed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} noted SEC(".maps");

/* Gramine's processes, and the offsets of their threads' counters. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct layout);
} gramine SEC(".maps");

/* By file, for processes that start later. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_FILES);
	__type(key, u32);
	__type(value, struct layout);
} layouts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 8192);
	__type(key, struct thread_key);
	__type(value, struct ended);
} ended SEC(".maps");

/* User space adds processes, and the program born adds their children. Preallocated, because before 6.2 perf_event programs must not
 * allocate. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048);
	__type(key, u32); /* tgid */
	__type(value, struct transitions);
} crossed SEC(".maps");

/* The same for the ENCLUs of runtimes that have their own. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048);
	__type(key, u32); /* tgid */
	__type(value, struct transitions);
} crossed_own SEC(".maps");

/* The cookies of all breakpoints, by enum doors. An inherited breakpoint has no cookie of its own. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DOORS);
	__type(key, u32);
	__type(value, u64);
} breakpoint SEC(".maps");

#include "interrupts.h"
#include "tenants.h"

static __always_inline void count(struct call_key *key)
{
	u64 zero = 0, *n = bpf_map_lookup_elem(&calls, key);
	struct owner *owner;

	if (!n && take_place(LIMITED_CALLS, PLACES_CALLS, key->tgid)) {
		bpf_map_update_elem(&calls, key, &zero, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&calls, key);
	}
	if (n) {
		__sync_fetch_and_add(n, 1);
		return;
	}
	lost(LOST_CALLS);
	owner = bpf_map_lookup_elem(&owners, &key->tgid);
	if (owner)
		__sync_fetch_and_add(&owner->lost_calls, 1);
}

#include "timing.h"

/* Every ECALL passes a table with the addresses of OCALLs. */
static __always_inline void note_table(u32 tgid, u64 address)
{
	struct table_key key = {.tgid = tgid, .address = address};
	u32 first = 0;
	u64 zero = 0, *n;

	if (!address || bpf_map_lookup_elem(&tables, &key))
		return;
	if (bpf_map_update_elem(&tables, &key, &zero, BPF_ANY)) {
		lost(LOST_TABLES);
		return;
	}
	n = bpf_map_lookup_elem(&noted, &first);
	if (n)
		__sync_fetch_and_add(n, 1);
}

/* Limits the number of function numbers, because programs may pass any number. */
static __always_inline u32 number(u32 of)
{
	return of < TOLD_APART ? of : TOLD_APART;
}

static __always_inline int on_call(struct pt_regs___args *regs)
{
	u64 cookie = bpf_get_attach_cookie(regs);
	u32 file = COOKIE_FILE(cookie);
	struct file_state *state = bpf_map_lookup_elem(&files, &file);
	struct call_key key = {.site = COOKIE_SITE(cookie)};
	int by = BY_ENCLAVE;

	if (!state)
		return 0;
	__sync_fetch_and_add(&state->cost,
			     COOKIE_COST(cookie) + (COOKIE_ENDS(cookie) ? state->timed : 0));
	if (!state->open)
		return 0;
	key.tgid = bpf_get_current_pid_tgid() >> 32;
	switch (COOKIE_ROLE(cookie)) {
	case ROLE_SDK_ECALL: /* sgx_ecall(eid, index, ocall_table, ms) */
		key.argument = (s32)regs->si < 0 ? ECALL_RUNTIME : number(regs->si);
		note_table(key.tgid, regs->dx);
		break;
	case ROLE_OE_ECALL: /* oe_ecall(enclave, func, arg, arg_out) */
		key.argument = number((u16)regs->si);
		break;
	case ROLE_OE_DISPATCH: /* some versions call it for each exit, not only for OCALLs */
		if (regs->di >> OE_CODE_SHIFT != OE_CODE_OCALL)
			return 0;
		key.argument = number((u16)(regs->di >> OE_FUNC_SHIFT) - OE_OCALL_BASE);
		break;
	case ROLE_OCALL:
		by = caller_of(regs, key.site);
		if (by < 0)
			return lost(LOST_CALLS), 0;
		key.argument = by;
		break;
	}
	count(&key);
	if (by != BY_ENCLAVE || !bpf_map_lookup_elem(&watched, &key.tgid))
		return 0;
	if (COOKIE_CROSSES(cookie))
		thread_crosses(key.tgid, BY_CALLS, 1, 0);
	if (state->timed && COOKIE_ENDS(cookie))
		begin(state, &key, regs->sp, cookie);
	return 0;
}

/* Handles the return of a call. The stack pointer is past the return address, at which it was when the call
 * began. The duration of a call whose interval has ended is not counted, because its weight is unknown. */
static __always_inline int on_return(struct pt_regs___args *regs)
{
	u64 now = bpf_ktime_get_ns(), cookie = bpf_get_attach_cookie(regs), frame = regs->sp - 8;
	struct call_key key = {.tgid = bpf_get_current_pid_tgid() >> 32,
			       .site = COOKIE_SITE(cookie)};
	u32 file = COOKIE_FILE(cookie);
	struct file_state *state = bpf_map_lookup_elem(&files, &file);
	struct thread_calls *t = follow(key.tgid, false);
	struct start *start;

	if (!state || !t)
		return 0;
	start = started(t, frame, key.site);
	if (!start || !start->ns)
		return 0;
	key.argument = start->argument;
	if (start->interval == state->open) {
		u64 ns = now - start->ns;

		__sync_fetch_and_add(&state->ended, 1);
		time_call(&key, ns);
		if (COOKIE_PAIRS(cookie)) {
			struct seen_call seen = {.of = {.site = key.site, .argument = key.argument},
						 .frame = frame,
						 .at = now,
						 .following = state->following,
						 .file = file};

			pair(key.tgid, PAIR_CALL, &seen.of, &seen.of, ns);
			call_ends(t, key.tgid, COOKIE_INWARD(cookie), &seen);
		}
	}
	start->frame = start->ns = 0;
	return 0;
}

/* Reads the counters of the control block of the current thread. A thread may be recorded several times while it
 * ends, and Gramine may set its counters to 0 in between. So larger values are kept. The time is read last: what
 * another thread does to the block after this time is not in the values. */
static __always_inline void remember(u32 tgid, struct layout *layout)
{
	struct task_struct___gs *task = (void *)bpf_get_current_task();
	struct thread_key key = {};
	struct ended value = {.tgid = tgid}, *earlier;
	u64 self = 0;
	int i;

	value.gs = BPF_CORE_READ(task, thread.gsbase);
	/* The child of vfork() uses its parent's memory. */
	if (!value.gs || BPF_CORE_READ(task, vfork_done))
		return;
	/* The block begins with its own address. A thread that has freed it was already read. */
	if (bpf_probe_read_user(&self, sizeof(self), (void *)value.gs) || self != value.gs)
		return;
	for (i = 0; i < COUNTERS; i++)
		if (bpf_probe_read_user(&value.counters[i], sizeof(u64),
					(void *)value.gs + layout->offsets[i])) {
			lost(LOST_THREADS);
			return;
		}
	key.tid = (u32)bpf_get_current_pid_tgid();
	key.start = BPF_CORE_READ(task, start_boottime);
	earlier = bpf_map_lookup_elem(&ended, &key);
	if (earlier && earlier->gs == value.gs &&
	    earlier->counters[EENTERS] > value.counters[EENTERS])
		return;
	value.at = bpf_ktime_get_boot_ns();
	if (bpf_map_update_elem(&ended, &key, &value, BPF_ANY))
		lost(LOST_THREADS);
}

/* A process of Gramine calls this once for each of its threads, when it enters the enclave by an ECALL. */
static __always_inline int on_gramine_start(void *regs)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32,
	    file = COOKIE_FILE(bpf_get_attach_cookie(regs));
	struct layout *layout = bpf_map_lookup_elem(&layouts, &file);

	if (layout && !bpf_map_lookup_elem(&gramine, &tgid) &&
	    bpf_map_update_elem(&gramine, &tgid, layout, BPF_ANY))
		lost(LOST_PROCESSES);
	return 0;
}

/* thread_exit() of Gramine, which frees the counters shortly after, and update_sgx_stats_on_exit(), which sets them
 * to 0. */
static __always_inline int on_gramine_thread(void *regs)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32,
	    file = COOKIE_FILE(bpf_get_attach_cookie(regs));
	struct layout *layout = bpf_map_lookup_elem(&layouts, &file);

	if (layout)
		remember(tgid, layout);
	return 0;
}

/* The end of a thread in the kernel, while its memory still exists. */
static __always_inline int on_exit(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	struct layout *layout = bpf_map_lookup_elem(&gramine, &tgid);

	if (layout)
		remember(tgid, layout);
	return 0;
}

/* A breakpoint on an ENCLU, before it is executed. An AEX ends at such an instruction too, with ERESUME in RAX. The
 * instruction is executed when the kernel has handled the interrupt or exception. */
static __always_inline int on_enclu(struct pt_regs___args *regs, u32 door, void *map)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32, file;
	u64 *cookie = bpf_map_lookup_elem(&breakpoint, &door), leaf = regs->ax;
	struct transitions *n = bpf_map_lookup_elem(map, &tgid);
	struct file_state *state;

	if (!cookie)
		return 0;
	file = COOKIE_FILE(*cookie);
	state = bpf_map_lookup_elem(&files, &file);
	if (!state)
		return 0;
	__sync_fetch_and_add(&state->cost, COOKIE_COST(*cookie));
	if (!state->open)
		return 0;
	if (!n)
		lost(LOST_PROCESSES);
	else if (leaf == EENTER)
		enter(n, left_in(door, state->open));
	else if (leaf == ERESUME)
		resume(n, left_in(door, state->open));
	if (n && (leaf == EENTER || leaf == ERESUME))
		thread_crosses(tgid, door, leaf == EENTER, leaf == ERESUME);
	return 0;
}

SEC("perf_event") int enclu(struct pt_regs___args *regs)
{
	return on_enclu(regs, DOOR_VDSO, &crossed);
}

SEC("perf_event") int enclu_own(struct pt_regs___args *regs)
{
	return on_enclu(regs, DOOR_OWN, &crossed_own);
}

static __always_inline void inherit(void *map, u32 by, u32 tgid)
{
	struct transitions *of = bpf_map_lookup_elem(map, &by), new = {};

	if (!of || of->left)
		return;
	__sync_fetch_and_add(&of->born, 1);
	if (tgid == by)
		return;
	new.tree = of->tree;
	if (bpf_map_update_elem(map, &tgid, &new, BPF_ANY))
		lost(LOST_PROCESSES);
}

/* Threads and children inherit breakpoints. A child must not get a second one. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(born, struct task_struct___gs *parent, struct task_struct___gs *child)
{
	u32 by = parent->tgid, tgid = child->tgid;

	inherit(&crossed, by, tgid);
	inherit(&crossed_own, by, tgid);
	return 0;
}

static __always_inline void leave(void *map, u32 tgid)
{
	struct transitions *of = bpf_map_lookup_elem(map, &tgid);

	if (of)
		of->left = 1;
}

/* The breakpoints of a process end with its program, because the code of the next one is at other addresses. */
SEC("tp_btf/sched_process_exec") int BPF_PROG(executed, struct task_struct___gs *task)
{
	u32 tgid = task->tgid;

	leave(&crossed, tgid);
	leave(&crossed_own, tgid);
	return 0;
}

#define UPROBE(name, body)                                                                         \
	SEC("uprobe") int name(struct pt_regs___args *regs)                                        \
	{                                                                                          \
		return body(regs);                                                                 \
	}                                                                                          \
	SEC("uprobe.multi") int name##_multi(struct pt_regs___args *regs)                          \
	{                                                                                          \
		return body(regs);                                                                 \
	}

UPROBE(call, on_call)
UPROBE(call_return, on_return)
UPROBE(gramine_start, on_gramine_start)
UPROBE(gramine_thread, on_gramine_thread)

/* Linux 6.16 added the second argument when it moved this tracepoint to before the memory is freed. Older
 * kernels refuse a program that reads the argument. They must, so the compiler must not remove the read. */
SEC("tp_btf/sched_process_exit") int BPF_PROG(exit_tracepoint, struct task_struct *task, bool last)
{
	asm volatile("" ::"r"(last));
	return on_exit();
}

SEC("fentry/do_exit") int exit_fentry(void *ctx)
{
	return on_exit();
}

SEC("kprobe/do_exit") int exit_kprobe(void *ctx)
{
	return on_exit();
}

/* One pass over the threads of Gramine's processes, which returns the address of each one's counters. */
SEC("iter/task") int threads(struct bpf_iter__task *ctx)
{
	struct task_struct___gs *task = (void *)ctx->task;
	struct thread thread = {};
	u32 tgid;

	if (!task)
		return 0;
	tgid = BPF_CORE_READ(task, tgid);
	if (!bpf_map_lookup_elem(&gramine, &tgid) || BPF_CORE_READ(task, vfork_done))
		return 0;
	thread.tgid = tgid;
	thread.tid = BPF_CORE_READ(task, pid);
	thread.start = BPF_CORE_READ(task, start_boottime);
	thread.gs = BPF_CORE_READ(task, thread.gsbase);
	if (thread.gs)
		bpf_seq_write(ctx->meta->seq, &thread, sizeof(thread));
	return 0;
}

/* An address of the process that runs mapped_inode, and the answer: the address of the inode that is mapped there, and the
 * error of the kernel. It is the inode that uprobes are registered on, also below an overlay, where stat(2) shows another
 * one for each mount. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 3);
	__type(key, u32);
	__type(value, u64);
} mapped_at SEC(".maps");

static long store_inode(struct task_struct *task, struct vm_area_struct___mapped *vma, void *ctx)
{
	u32 answer = 1;
	u64 *inode = bpf_map_lookup_elem(&mapped_at, &answer);

	if (inode)
		*inode = (u64)BPF_CORE_READ(vma, vm_file, f_inode);
	return 0;
}

/* User space runs this. */
SEC("raw_tp") int mapped_inode(void *ctx)
{
	u32 question = 0, result = 2;
	u64 *address = bpf_map_lookup_elem(&mapped_at, &question);
	u64 *error = bpf_map_lookup_elem(&mapped_at, &result);

	if (address && error)
		*error = bpf_find_vma(bpf_get_current_task_btf(), *address, store_inode, NULL, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
