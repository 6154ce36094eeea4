/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef PINGPONG_H
#define PINGPONG_H

enum { ECALL_PING };
enum { OCALL_PONG };

struct ping {
	unsigned long pongs; /* OCALLs to make */
	unsigned long sum;
	double outside; /* seconds in OCALLs, written outside */
	int exitless;	/* a thread outside serves the OCALLs, and none leaves the enclave */
	int wanted;	/* it has one to serve */
};

#endif
