/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/*
 * The untrusted runtime of the testbed's enclaves. Function names, arguments and the layout of the OCALL
 * table are those of Intel's SDK (psw/urts, common/inc/sgx_urts.h), so that a tool that watches the SDK's
 * libsgx_urts.so can watch this one. The rest differs: there is no signing and no security.
 */
#ifndef SGX_URTS_H
#define SGX_URTS_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t sgx_enclave_id_t;
typedef int sgx_status_t;
typedef uint8_t sgx_launch_token_t[1024];
typedef struct {
	uint64_t flags, xfrm;
	uint32_t misc_select;
} sgx_misc_attribute_t;

/* Codes of the SDK's sgx_error.h. */
enum {
	SGX_SUCCESS = 0,
	SGX_ERROR_UNEXPECTED = 1,
	SGX_ERROR_INVALID_PARAMETER = 2,
	SGX_ERROR_OUT_OF_MEMORY = 3,
	SGX_ERROR_INVALID_FUNCTION = 0x1001,
	SGX_ERROR_OUT_OF_TCS = 0x1003,
	SGX_ERROR_ENCLAVE_CRASHED = 0x1006,
	SGX_ERROR_INVALID_ENCLAVE = 0x2001,
	SGX_ERROR_INVALID_ENCLAVE_ID = 0x2002,
	SGX_ERROR_NO_DEVICE = 0x2006,
};

/* The table that the SDK's edger8r generates: a count and as many bridges. */
typedef sgx_status_t (*sgx_bridge_fn_t)(void *ms);
struct sgx_ocall_table {
	size_t count;
	sgx_bridge_fn_t ocall[];
};

/* Settings that the SDK reads from the signed enclave's metadata. Zero means the default. */
struct testbed_config {
	size_t heap_pages;    /* added before EINIT */
	size_t dynamic_pages; /* after the heap; EAUG adds each at its first access */
	size_t threads;	      /* TCS; 1 */
	size_t stack_pages;   /* per thread; 8 */
	int own;	      /* enter by an ENCLU of the library, not through the vDSO */
};
/* Configures enclaves that are created later. */
void testbed_configure(const struct testbed_config *config);

/* In a child after fork(): leaves the first TCS of an inherited enclave to the parent. */
void testbed_forked(sgx_enclave_id_t eid, size_t tcs);

sgx_status_t sgx_create_enclave(const char *file, int debug, sgx_launch_token_t *token,
				int *token_updated, sgx_enclave_id_t *eid,
				sgx_misc_attribute_t *attributes);
sgx_status_t sgx_destroy_enclave(sgx_enclave_id_t eid);
sgx_status_t sgx_ecall(sgx_enclave_id_t eid, int index, const void *ocall_table, void *ms);

#endif
