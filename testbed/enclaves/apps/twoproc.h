/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TWOPROC_H
#define TWOPROC_H

enum { ECALL_ADD };
enum { OCALL_NOTE };

struct sum {
	unsigned long n;     /* in */
	unsigned long total; /* out: of both processes */
	unsigned long notes;
};

#endif
