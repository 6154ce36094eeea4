/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Bytes that system calls of watched processes move into and out of their memory, as the calls return them. */
#ifndef TEESCOPE_BYTES_H
#define TEESCOPE_BYTES_H

#include "slots.h"

/* System calls of x86-64 by number. The list omits calls that return a number of messages, and calls that do not move bytes of
 * the caller's memory (sendfile, splice, copy_file_range).
 */
static __always_inline void count_bytes(struct cpu_state *state, u32 call, long n)
{
	struct row *row = row_of(state);

	if (!row)
		return;
	switch (call) {
	case 0:	  /* read */
	case 17:  /* pread64 */
	case 19:  /* readv */
	case 45:  /* recvfrom */
	case 47:  /* recvmsg */
	case 295: /* preadv */
	case 327: /* preadv2 */
		row->bytes[BYTES_IN] += n;
		break;
	case 1:	  /* write */
	case 18:  /* pwrite64 */
	case 20:  /* writev */
	case 44:  /* sendto */
	case 46:  /* sendmsg */
	case 296: /* pwritev */
	case 328: /* pwritev2 */
		row->bytes[BYTES_OUT] += n;
		break;
	}
}

#endif
