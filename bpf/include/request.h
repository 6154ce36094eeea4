/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Types of requests to block devices (include/linux/blk-mq.h). As in kernel.h, only names and types matter. */
#ifndef TEESCOPE_REQUEST_H
#define TEESCOPE_REQUEST_H

#include "kernel.h"

/* include/linux/blk_types.h */
enum {
	REQ_OP_MASK = 0xff,
	REQ_OP_WRITE = 1, /* every operation that writes is odd */
	REQ_OP_DISCARD = 3,
	REQ_OP_SCSI_IN = 32, /* commands of drivers begin here, or at 34, as in 6.1 */
};

/* request.rq_flags of kernels without the enum below */
enum {
	RQF_FLUSH_SEQ = 1 << 4, /* in a sequence of flushes, which ends with the request itself */
	RQF_IO_STAT = 1 << 13,	/* the kernel counts it in /proc/diskstats */
};

enum rqf_flags { /* numbers of bits; 6.12 has it, and 5.18 does not */
		 __RQF_FLUSH_SEQ = 1,
		 __RQF_IO_STAT = 10,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct bio {
	struct blkcg_gq *bi_blkg; /* with CONFIG_BLK_CGROUP */
};

struct request {
	u32 cmd_flags;
	u32 rq_flags;
	u32 __data_len; /* bytes that are not complete */
	struct bio *bio;
	u64 start_time_ns; /* of its allocation, as bpf_ktime_get_ns */
};

#pragma clang attribute pop

#endif
