/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * Requests to block devices, by the workload that has made them. The kernel stores when a request began, so only its slot
 * must be remembered. A request counts when the kernel counts it in /proc/diskstats, with the same operation.
 *
 * Requests end in interrupts, which do not belong to the workload of the CPU. They are rare and the memory of a row for
 * each CPU would be large. So all CPUs use the record of a slot and add to it atomically.
 */
#ifndef TEESCOPE_BLOCK_H
#define TEESCOPE_BLOCK_H

#include "log2.h"
#include "request.h"
#include "slots.h"

#define EEXIST 17 /* of include/uapi/asm-generic/errno-base.h */

/* By slot. User space sets the size before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* slots */
	__type(key, u32);
	__type(value, struct block_io);
} blocks SEC(".maps");

/* The workload that made a request. When the request ends, the slot may have another owner. */
struct requester {
	u32 slot;
	u32 owner; /* as owner_of */
};

/* The requests in flight, by address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, REQUESTS_IN_FLIGHT);
	__type(key, u64);
	__type(value, struct requester);
} requests SEC(".maps");

/* Returns the process that a slot was created for. A slot that has become free and is used again has another one. */
static __always_inline u32 owner_of(u32 slot)
{
	struct group *group = bpf_map_lookup_elem(&groups, &slot);

	return group ? group->tgid : 0;
}

static __always_inline bool is_of_driver(struct request *rq)
{
	return (rq->cmd_flags & REQ_OP_MASK) >= REQ_OP_SCSI_IN;
}

/* Returns the slot for a request of a kernel thread. It is the slot of the cgroup that the kernel charges the request to, if that
 * cgroup is a container or a unit. Kernel threads perform write-back and encryption for other workloads.
 */
static __always_inline u32 charged_slot(struct request *rq)
{
	struct group_key key = {};
	struct bio *bio = rq->bio;
	u32 *known;

	if (cgroup_controller >= 0 || !bio || !bpf_core_field_exists(bio->bi_blkg))
		return SLOT_KERNEL;
	key.cgroup = BPF_CORE_READ(bio, bi_blkg, blkcg, css.cgroup, kn, id);
	known = bpf_map_lookup_elem(&group_of, &key);
	return known ? *known : SLOT_KERNEL;
}

/* Stores who makes a request. Returns the result of the map. */
static __always_inline int remember(struct request *rq, u32 slot, u64 flags)
{
	struct requester by = {.slot = slot, .owner = owner_of(slot)};
	u64 key = (u64)rq;

	return is_of_driver(rq) ? 0 : bpf_map_update_elem(&requests, &key, &by, flags);
}

static __always_inline int begin_request(struct request *rq, u32 slot, u64 flags)
{
	remember(rq, slot, flags);
	return 0;
}

/* Begins a request whose address no other request in flight has. If one is remembered, its end was not seen: the kernel drops
 * some events while another program is attached to the tracepoint. */
static __always_inline int begin_new_request(struct request *rq, u32 slot)
{
	if (remember(rq, slot, BPF_NOEXIST) == -EEXIST) {
		lost(LOST_REQUESTS);
		remember(rq, slot, BPF_ANY);
	}
	return 0;
}

/* Removes a request that is not counted, or that was merged into another request. */
static __always_inline int forget_request(struct request *rq)
{
	u64 key = (u64)rq;

	bpf_map_delete_elem(&requests, &key);
	return 0;
}

static __always_inline bool is_counted(struct request *rq)
{
	u32 flags = rq->rq_flags, counted = RQF_IO_STAT;

	if (bpf_core_enum_value_exists(enum rqf_flags, __RQF_IO_STAT))
		counted = 1U << bpf_core_enum_value(enum rqf_flags, __RQF_IO_STAT);
	return flags & counted;
}

/* Reports whether a request ends now. A request with a flush ends several times. Only the last time counts. */
static __always_inline bool ends(struct request *rq, u32 bytes)
{
	u32 flushing = RQF_FLUSH_SEQ;

	if (bpf_core_enum_value_exists(enum rqf_flags, __RQF_FLUSH_SEQ))
		flushing = 1U << bpf_core_enum_value(enum rqf_flags, __RQF_FLUSH_SEQ);
	return bytes >= rq->__data_len && !(rq->rq_flags & flushing);
}

static __always_inline u32 op_of(struct request *rq)
{
	u32 op = rq->cmd_flags & REQ_OP_MASK;

	if (op == REQ_OP_DISCARD)
		return BLOCK_DISCARD;
	return op & REQ_OP_WRITE ? BLOCK_WRITE : BLOCK_READ;
}

/* A part of a request is complete, or all of it. */
static __always_inline int end_request(struct request *rq, u32 bytes)
{
	u64 key = (u64)rq, now, ns;
	struct block_io *io;
	u32 slot = SLOT_OTHER, op, bucket;
	struct requester *known;
	bool last;

	if (is_of_driver(rq))
		return 0;
	if (!is_counted(rq)) /* such as on a device with disabled statistics */
		return forget_request(rq);
	last = ends(rq, bytes);
	known = bpf_map_lookup_elem(&requests, &key);
	if (known && owner_of(known->slot) == known->owner)
		slot = known->slot;
	else if (last && rq->start_time_ns >= control.requests_since)
		lost(LOST_REQUESTS);
	io = bpf_map_lookup_elem(&blocks, &slot);
	if (!io)
		return 0;
	op = op_of(rq);
	if (op >= BLOCK_OPS)
		return 0;
	__sync_fetch_and_add(&io->bytes[op], bytes);
	if (!last)
		return 0;
	now = bpf_ktime_get_ns();
	ns = now > rq->start_time_ns ? now - rq->start_time_ns : 0;
	bucket = bucket_of(ns, BLOCK_SHIFT, BLOCK_BUCKETS);
	if (bucket < BLOCK_BUCKETS)
		__sync_fetch_and_add(&io->requests[op][bucket], 1);
	__sync_fetch_and_add(&io->ns[op], ns);
	bpf_map_delete_elem(&requests, &key);
	return 0;
}

#endif
