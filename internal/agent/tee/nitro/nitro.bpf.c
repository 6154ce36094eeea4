// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
//go:build ignore

/*
 * Counts the vsock traffic of this machine with enclaves and virtual machines, by their address (CID).
 *
 * The programs are raw tracepoint programs, so that they can be loaded before the module that has the tracepoints.
 */
#include "nitro.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_PEERS);
	__type(key, u32);
	__type(value, struct traffic);
} peers SEC(".maps");

/* enum virtio_vsock_op */
enum {
	OP_REQUEST = 1,
	OP_RESPONSE = 2,
	OP_RST = 3,
	OP_RW = 5,
};

#define OTHERS 0xffffffff /* VMADDR_CID_ANY, which no peer has. User space adds its entry */

/*
 * Returns the entry of a peer. It gets one when it takes part in a connection. Any process can send a request to any address, so a
 * request without an answer adds no entry.
 */
static __always_inline struct traffic *traffic_of(u32 cid, u32 op, u32 direction)
{
	struct traffic none = {}, *its = bpf_map_lookup_elem(&peers, &cid);
	u32 others = OTHERS;

	if (its)
		return its;
	if (op == OP_RW || (direction == RECEIVED && (op == OP_REQUEST || op == OP_RESPONSE))) {
		bpf_map_update_elem(&peers, &cid, &none, BPF_NOEXIST);
		its = bpf_map_lookup_elem(&peers, &cid);
	}
	return its ? its : bpf_map_lookup_elem(&peers, &others);
}

static __always_inline int count(u32 cid, u32 length, u32 op, u32 direction)
{
	struct traffic *its = traffic_of(cid, op, direction);

	if (!its)
		return 0;
	__sync_fetch_and_add(&its->packets[direction], 1);
	switch (op) {
	case OP_RW:
		__sync_fetch_and_add(&its->bytes[direction], length);
		break;
	case OP_REQUEST:
		__sync_fetch_and_add(&its->opened[direction], 1);
		break;
	case OP_RST:
		__sync_fetch_and_add(&its->resets[direction], 1);
		break;
	}
	return 0;
}

/* virtio_transport_alloc_pkt(src_cid, src_port, dst_cid, dst_port, len, type, op, flags, ...) */
SEC("raw_tp/virtio_transport_alloc_pkt") int vsock_sent(u64 *ctx)
{
	return count(ctx[2], ctx[4], (u16)ctx[6], SENT);
}

/* virtio_transport_recv_pkt(src_cid, src_port, dst_cid, dst_port, len, type, op, flags, ...) */
SEC("raw_tp/virtio_transport_recv_pkt") int vsock_received(u64 *ctx)
{
	return count(ctx[0], ctx[4], (u16)ctx[6], RECEIVED);
}

char LICENSE[] SEC("license") = "GPL";
