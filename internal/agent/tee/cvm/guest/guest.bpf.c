// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * Counts what a confidential virtual machine does because it is one: data that it copies through shared memory for its
 * devices (swiotlb), exceptions instead of instructions that need the host (#VE, #VC), and work on the state of memory.
 *
 * Copies count at the return of swiotlb_map. Its tracepoint swiotlb_bounced comes before the kernel has found room, so it
 * also counts mappings that fail, and those that drivers then try again.
 */
#include "guest.h"
#include "group.h"
#include "program.h"

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
	__uint(max_entries, 1); /* groups_max */
	__type(key, u32);
	__type(value, struct group_use);
} group_uses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct doing);
} doing_of SEC(".maps");

/* Returns the group of the current process. */
static __noinline u32 group_of_current(struct task_struct *leader)
{
	struct kernfs_node *node = kernfs_of(leader);
	struct group_key key = {.cgroup = BPF_CORE_READ(node, id)};
	u32 group;

	read_program(leader, (struct program_name *)key.comm);
	group = find_group(&key, node, leader);
	return group == NO_GROUP ? GROUP_OTHER : group;
}

static __always_inline bool begins(const char *text, const char *with, u32 size)
{
	u32 i;

	for (i = 0; i < size; i++)
		if (text[i] != with[i])
			return false;
	return true;
}

/* Returns the class of a device: of a PCI device by its class code, of one of Hyper-V by its driver. */
static __noinline u32 class_of(struct device *dev)
{
	struct pci_dev *pci = (void *)dev - bpf_core_field_offset(struct pci_dev, dev);
	char bus[4] = {}, driver[12] = {};

	bpf_probe_read_kernel_str(bus, sizeof(bus), BPF_CORE_READ(dev, bus, name));
	if (begins(bus, "pci", 4)) {
		switch (BPF_CORE_READ(pci, class) >> 16) {
		case 0x01:
			return STORAGE;
		case 0x02:
			return NETWORK;
		case 0x03: /* display controllers */
		case 0x0b: /* processors */
		case 0x12: /* accelerators */
			return ACCELERATOR;
		}
		return OTHER;
	}
	bpf_probe_read_kernel_str(driver, sizeof(driver), BPF_CORE_READ(dev, driver, name));
	if (begins(driver, "hv_storvsc", 11))
		return STORAGE;
	if (begins(driver, "hv_netvsc", 10))
		return NETWORK;
	return OTHER;
}

/* Programs can preempt each other, so additions are atomic. */
static __always_inline void add_machine(u32 cell, u64 size, bool failed)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct totals *t = bpf_map_lookup_elem(&machine, &cpu);

	if (!t || cell > MACHINE_COUNTS - BOUNCES)
		return;
	if (failed) {
		__sync_fetch_and_add(&t->count[cell + FAILURES], 1);
		return;
	}
	__sync_fetch_and_add(&t->count[cell + MAPPINGS], 1);
	__sync_fetch_and_add(&t->count[cell + BYTES], size);
}

static __always_inline void add_group(u32 group, u32 cell, u64 size, bool failed)
{
	struct group_use *g = bpf_map_lookup_elem(&group_uses, &group);

	if (!g || cell > GROUP_COUNTS - BOUNCES)
		return;
	if (failed) {
		__sync_fetch_and_add(&g->count[cell + FAILURES], 1);
		return;
	}
	__sync_fetch_and_add(&g->count[cell + MAPPINGS], 1);
	__sync_fetch_and_add(&g->count[cell + BYTES], size);
}

/* swiotlb_map(device, address, size, direction, attributes) returns an address, or ~0 if there is no room. */
SEC("fexit/swiotlb_map") int bounced(u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	u32 class = class_of((struct device *)ctx[0]), direction;
	bool failed = ctx[5] == ~0ULL;
	u64 size = ctx[2];

	switch ((u32)ctx[3]) { /* enum dma_data_direction */
	case 1:
		direction = TO_DEVICE;
		break;
	case 2:
		direction = FROM_DEVICE;
		break;
	default:
		direction = BOTH;
	}
	add_machine((class * DIRECTIONS + direction) * BOUNCES, size, failed);
	/* Packets are mapped in interrupts of any process. */
	if (class == NETWORK || BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return 0;
	add_group(group_of_current(BPF_CORE_READ(task, group_leader)), class * BOUNCES, size,
		  failed);
	return 0;
}

static __always_inline struct totals *this_cpu(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&machine, &cpu);
}

/* Counts an exception for the machine, and for the process that ran, if any. */
static __noinline int count_exception(u32 cause, bool user)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	u32 cell = cause * MODES + (user ? MODE_USER : MODE_KERNEL), group;
	struct totals *t = this_cpu();
	struct group_use *g;

	if (!t || cell >= EXCEPTIONS)
		return 0;
	__sync_fetch_and_add(&t->exceptions[cell], 1);
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD || !BPF_CORE_READ(task, tgid))
		return 0;
	group = group_of_current(BPF_CORE_READ(task, group_leader));
	g = bpf_map_lookup_elem(&group_uses, &group);
	if (g)
		__sync_fetch_and_add(&g->count[EXCEPTIONS_AT + cell], 1);
	return 0;
}

static __always_inline bool from_user(struct pt_regs___mode *regs)
{
	return BPF_CORE_READ(regs, cs) & 3;
}

/* tdx_handle_virt_exception(regs, ve): ve begins with the reason, which is one of VMX. */
SEC("fentry/tdx_handle_virt_exception") int virt_exception(u64 *ctx)
{
	u32 cause = CAUSE_OTHER;
	u64 reason = 0;

	bpf_probe_read_kernel(&reason, sizeof(reason), (void *)ctx[1]);
	switch (reason) {
	case 10:
		cause = CAUSE_CPUID;
		break;
	case 12:
		cause = CAUSE_HLT;
		break;
	case 18:
		cause = CAUSE_HYPERCALL;
		break;
	case 30:
		cause = CAUSE_IO;
		break;
	case 31:
		cause = CAUSE_MSR_READ;
		break;
	case 32:
		cause = CAUSE_MSR_WRITE;
		break;
	case 48: /* EPT violation: memory of a device */
		cause = CAUSE_MMIO;
		break;
	}
	return count_exception(cause, from_user((struct pt_regs___mode *)ctx[0]));
}

#define WRMSR 0x300f /* the bytes 0f 30 */
#define RDMSR 0x320f

/* vc_raw_handle_exception(regs, error_code): the code is that of an exit of SVM. */
SEC("fentry/vc_raw_handle_exception") int vc_exception(u64 *ctx)
{
	struct pt_regs___mode *regs = (struct pt_regs___mode *)ctx[0];
	u32 cause = CAUSE_OTHER;
	u16 opcode = 0;

	switch (ctx[1]) {
	case 0x72:
		cause = CAUSE_CPUID;
		break;
	case 0x78:
		cause = CAUSE_HLT;
		break;
	case 0x7b:
		cause = CAUSE_IO;
		break;
	case 0x7c:
		bpf_probe_read_kernel(&opcode, sizeof(opcode), (void *)BPF_CORE_READ(regs, ip));
		if (opcode == WRMSR)
			cause = CAUSE_MSR_WRITE;
		else if (opcode == RDMSR)
			cause = CAUSE_MSR_READ;
		break; /* otherwise the instruction could not be read, or is another one */
	case 0x81:
		cause = CAUSE_HYPERCALL;
		break;
	case 0x400:
		cause = CAUSE_MMIO;
		break;
	}
	return count_exception(cause, from_user(regs));
}

static __noinline int begin_work(u32 work)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct doing *d =
		bpf_task_storage_get(&doing_of, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!d || work >= WORKS)
		return 0;
	if (!d->inside[work]++)
		d->since[work] = bpf_ktime_get_ns();
	return 0;
}

/* If an interrupt does work of the same kind as the interrupted thread, its time is included in that of the thread. */
static __noinline int end_work(u32 work, u64 pages, bool failed)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct doing *d = bpf_task_storage_get(&doing_of, task, NULL, 0);
	struct totals *t = this_cpu();

	if (!d || !t || work >= WORKS || !d->inside[work])
		return 0;
	if (!--d->inside[work])
		__sync_fetch_and_add(&t->ns[work], bpf_ktime_get_ns() - d->since[work]);
	if (failed)
		return 0;
	__sync_fetch_and_add(&t->works[work], 1);
	__sync_fetch_and_add(&t->pages[work], pages);
	return 0;
}

/* __set_memory_enc_pgtable(address, pages, private) returns 0 or an error. */
SEC("fentry/__set_memory_enc_pgtable") int convert(u64 *ctx)
{
	return begin_work((u8)ctx[2] ? TO_PRIVATE : TO_SHARED);
}

SEC("fexit/__set_memory_enc_pgtable") int converted(u64 *ctx)
{
	return end_work((u8)ctx[2] ? TO_PRIVATE : TO_SHARED, (u32)ctx[1], (s32)ctx[3] != 0);
}

/* accept_memory: up to Linux 6.11 its second argument is the end, later it is the size. */
SEC("fentry/accept_memory") int accept(u64 *ctx)
{
	return begin_work(ACCEPT);
}

SEC("fexit/accept_memory") int accepted(u64 *ctx)
{
	return end_work(ACCEPT, 0, false);
}

/* cpu_idle(state, cpu): the state is ~0 at the end of the wait. */
SEC("tp_btf/cpu_idle") int cpu_idle(u64 *ctx)
{
	struct totals *t = this_cpu();

	if (t && (u32)ctx[0] != ~0U)
		__sync_fetch_and_add(&t->idle, 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
