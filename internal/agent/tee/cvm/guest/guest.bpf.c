// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * Counts data that a confidential virtual machine copies through shared memory for its devices (swiotlb), at the return
 * of swiotlb_map. Its tracepoint swiotlb_bounced comes before the kernel has found room, so it also counts mappings that
 * fail, and those that drivers then try again.
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
	/* Packets are mapped in interrupts, whatever process they interrupt. */
	if (class == NETWORK || BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return 0;
	add_group(group_of_current(BPF_CORE_READ(task, group_leader)), class * BOUNCES, size,
		  failed);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
