/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Declarations that the runtime's files share. */
#ifndef URTS_H
#define URTS_H

#include <pthread.h>
#include <stdbool.h>
#include "sgx_urts.h"
#include "../trts/layout.h"

#define PAGE 4096UL

enum { EENTER = 2, ERESUME = 3, EEXIT = 4 };

struct enclave {
	sgx_enclave_id_t id;
	int fd;
	uint64_t base, size;
	size_t threads;
	bool own; /* entered by an ENCLU of this library */
	uint64_t *tcs;
	bool *taken;
	pthread_mutex_t lock;
};

/* build.c */
sgx_status_t build_enclave(struct enclave *e, const char *file, bool debug,
			   const struct testbed_config *config);
void drop_enclave(struct enclave *e);

/* image.c */
struct segment {
	uint64_t offset, pages;
	uint64_t permissions; /* of SECINFO */
	uint8_t *data;
};
struct image {
	struct segment segments[8];
	int count;
	uint64_t pages, entry;
};
bool image_load(struct image *image, const char *file);
void image_free(struct image *image);

/* vdso.c: enters a TCS. Returns false if there is no vDSO function. */
struct call {
	long reason, value; /* RDI and RSI at the exit */
	unsigned int leaf; /* EEXIT, or ERESUME after an exception that the kernel did not handle */
	unsigned int vector;
	uint64_t address;
};
bool vdso_find(void);
int vdso_call(uint64_t tcs, unsigned int leaf, long command, void *arg, struct call *call);
int own_call(uint64_t tcs, long command, void *arg, struct call *call); /* without the vDSO */

#endif
