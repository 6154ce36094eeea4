/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The key-value server's protocol and its ECALL and OCALLs. */
#ifndef KV_H
#define KV_H

#include <stdint.h>

/* Each request is a header, the key and the value; each reply a header and the value. */
enum { KV_GET = 1, KV_SET = 2 };
enum { KV_OK = 0, KV_MISSING = 1, KV_FULL = 2, KV_BAD = 3 };
#define KV_KEY	 32 /* maximum, in bytes */
#define KV_VALUE 472

struct kv_header {
	uint8_t op; /* or the status of a reply */
	uint8_t key;
	uint16_t value;
};

enum { ECALL_SERVE };
enum { OCALL_RECV, OCALL_SEND, OCALLS };

/* One connection's buffers, outside. */
struct kv_conn {
	int fd;
	int chatty;    /* one OCALL for each piece of a request, which is slow */
	uint32_t want; /* OCALL_RECV: least bytes, 0 for those available. OCALL_SEND: bytes */
	uint32_t got;
	uint64_t requests;
	uint64_t ocalls[OCALLS];
	uint8_t in[16384], out[16384];
};

#endif
