/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * A group is a set of processes that are counted together, such as those of one cgroup that run the same program. Its
 * number indexes the arrays that the including object counts into. The kernel side takes a free number when it sees a
 * new key, and records the key's cgroup and process. User space (internal/agent/attribution) names the group after this
 * record, and frees the number when nothing counts into it any more.
 *
 * The including object chooses the key: a program and its cgroup, a whole cgroup, or a virtual machine. User space sets
 * the sizes of the three maps before loading and fills free_groups. The object may keep the first numbers for itself.
 */
#ifndef TEESCOPE_GROUP_H
#define TEESCOPE_GROUP_H

#include "cgroup.h"
#include "layout.h"

enum {
	NO_GROUP = 0xffffffff, /* no number was free */
};

struct group_key {
	u64 cgroup;  /* kernfs ID */
	u8 comm[16]; /* program name; empty when the whole cgroup is one group */
};

struct group {
	u64 cgroup;
	u32 ready; /* set last, when the record is complete */
	u32 tgid;  /* the process that it was created for */
	u32 depth; /* names in path, leaf first */
	u32 reserved;
	u8 comm[16];
	u8 path[PATH_LEVELS][PATH_NAME];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct group_key);
	__type(value, u32);
} group_of SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, u32);
} free_groups SEC(".maps");

/* Takes a free number, and records the process that it is for and the names of the cgroup. */
static __noinline u32 new_group(struct group_key *key, struct kernfs_node *node, u32 tgid)
{
	struct group *group;
	u32 number, *winner;

	if (!key || bpf_map_pop_elem(&free_groups, &number))
		return NO_GROUP;
	group = bpf_map_lookup_elem(&groups, &number);
	if (!group)
		return NO_GROUP;
	group->cgroup = key->cgroup;
	group->tgid = tgid;
	__builtin_memcpy(group->comm, key->comm, sizeof(group->comm));
	group->depth = cgroup_path(node, group->path);
	if (!bpf_map_update_elem(&group_of, key, &number, BPF_NOEXIST)) {
		group->ready = 1;
		return number;
	}
	/* Another CPU has added the key first. */
	bpf_map_push_elem(&free_groups, &number, 0);
	winner = bpf_map_lookup_elem(&group_of, key);
	return winner ? *winner : NO_GROUP;
}

/* Returns the number of a group, which is created if it is new. `node` is the cgroup of the key, `tgid` a process. */
static __always_inline u32 find_group(struct group_key *key, struct kernfs_node *node, u32 tgid)
{
	u32 *known = bpf_map_lookup_elem(&group_of, key);

	return known ? *known : new_group(key, node, tgid);
}

GO_TYPE(attribution, struct group_key, Key);
GO_TYPE(attribution, struct group, Record);
GO_VALUES(attribution, enum path_limits, );

#endif
