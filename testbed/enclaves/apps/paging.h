/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef PAGING_H
#define PAGING_H

#include <stdint.h>

enum { ECALL_WRITE, ECALL_CHECK, ECALL_ACCEPT };

struct touch {
	uint64_t first, pages; /* of the heap, or of the pages after it */
	uint64_t seed;
	uint64_t errors;
};

#endif
