/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The cgroup that decides which workload a task belongs to, and its names. They are recorded while the task lives,
 * because a short-lived process and its cgroup may be gone before user space reads them.
 */
#ifndef TEESCOPE_CGROUP_H
#define TEESCOPE_CGROUP_H

#include "kernel.h"

enum path_limits {
	PATH_LEVELS = 8,
	PATH_NAME = 96,
};

const volatile s32 cgroup_controller =
	-1; /* -1: the v2 hierarchy; else which v1 controller, see kernfs_of */

/* Returns the kernfs node of the cgroup that decides which workload a task belongs to. */
static __always_inline struct kernfs_node *kernfs_of(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup_subsys_state *state = NULL;
	u64 i;

	if (cgroup_controller < 0)
		return BPF_CORE_READ(set, dfl_cgrp, kn);
	switch (cgroup_controller) {
	case 0:
		i = bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id);
		break;
	case 1:
		i = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
		break;
	case 2:
		i = bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id);
		break;
	default:
		i = bpf_core_enum_value(enum cgroup_subsys_id, devices_cgrp_id);
	}
	bpf_probe_read_kernel(&state, sizeof(state),
			      (void *)set + bpf_core_field_offset(struct css_set, subsys) +
				      i * sizeof(state));
	return BPF_CORE_READ(state, cgroup, kn);
}

static __always_inline struct kernfs_node *kernfs_parent(struct kernfs_node *node)
{
	struct kernfs_node___rcu *newer = (void *)node;

	if (bpf_core_field_exists(newer->__parent))
		return BPF_CORE_READ(newer, __parent);
	return BPF_CORE_READ(node, parent);
}

/* Records the names of a cgroup and of those above it, leaf first, and returns their number. */
static __always_inline u32 cgroup_path(struct kernfs_node *node, u8 path[PATH_LEVELS][PATH_NAME])
{
	int i;

	for (i = 0; i < PATH_LEVELS && node; i++) {
		struct kernfs_node *parent = kernfs_parent(node);

		if (!parent) /* the root has no name */
			break;
		bpf_probe_read_kernel_str(path[i], PATH_NAME, BPF_CORE_READ(node, name));
		node = parent;
	}
	return i;
}

#endif
