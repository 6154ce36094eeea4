/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Types that the programs for vsock traffic share with user space. */
#ifndef TEESCOPE_NITRO_H
#define TEESCOPE_NITRO_H

#include "kernel.h"
#include "layout.h"

enum limits {
	MAX_PEERS = 128,
};

/* Seen from this machine. */
enum direction {
	SENT,
	RECEIVED,
	DIRECTIONS,
};

/* The traffic with a peer. */
struct traffic {
	u64 bytes[DIRECTIONS]; /* data of connections */
	u64 packets[DIRECTIONS];
	u64 opened[DIRECTIONS]; /* requests for a connection */
	u64 resets[DIRECTIONS];
};

GO_TYPE(nitro, struct traffic, traffic);
GO_VALUES(nitro, enum limits, );
GO_VALUES(nitro, enum direction, );

#endif
