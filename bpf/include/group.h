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
	u32 user;  /* the real user of that process */
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

/*
 * How many groups each user has, except root. A user can create groups without limit, because the names of programs are
 * part of the key. User space corrects the numbers when it frees groups.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} groups_of SEC(".maps");

const volatile u32 max_groups_of_user = 0xffffffff;

/* Takes a free number, and records the process that it is for and the names of the cgroup. */
static __noinline u32 new_group(struct group_key *key, struct kernfs_node *node,
				struct task_struct *leader)
{
	u32 number, *winner, *its, user, one = 1;
	struct group *group;

	if (!key)
		return NO_GROUP;
	user = BPF_CORE_READ(leader, real_cred, uid.val);
	its = user ? bpf_map_lookup_elem(&groups_of, &user) : NULL;
	if (its && *its >= max_groups_of_user)
		return NO_GROUP;
	if (bpf_map_pop_elem(&free_groups, &number))
		return NO_GROUP;
	group = bpf_map_lookup_elem(&groups, &number);
	if (!group)
		return NO_GROUP;
	group->cgroup = key->cgroup;
	group->tgid = BPF_CORE_READ(leader, tgid);
	group->user = user;
	__builtin_memcpy(group->comm, key->comm, sizeof(group->comm));
	group->depth = cgroup_path(node, group->path);
	if (!bpf_map_update_elem(&group_of, key, &number, BPF_NOEXIST)) {
		group->ready = 1;
		if (its)
			__sync_fetch_and_add(its, 1);
		else if (user)
			bpf_map_update_elem(&groups_of, &user, &one, BPF_NOEXIST);
		return number;
	}
	/* Another CPU has added the key first. */
	bpf_map_push_elem(&free_groups, &number, 0);
	winner = bpf_map_lookup_elem(&group_of, key);
	return winner ? *winner : NO_GROUP;
}

/* Returns the number of a group, which is created if it is new. `node` is the cgroup of the key, `leader` a process. */
static __always_inline u32 find_group(struct group_key *key, struct kernfs_node *node,
				      struct task_struct *leader)
{
	u32 *known = bpf_map_lookup_elem(&group_of, key);

	return known ? *known : new_group(key, node, leader);
}

GO_TYPE(attribution, struct group_key, Key);
GO_TYPE(attribution, struct group, Record);
GO_VALUES(attribution, enum path_limits, );

#endif
