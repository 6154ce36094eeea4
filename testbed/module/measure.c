// SPDX-License-Identifier: GPL-2.0-only
/* MRENCLAVE; SDM "Measuring Enclave Contents". */
#include "swsgx.h"

#include <crypto/sha2.h>

static bool measure;
module_param(measure, bool, 0644);
MODULE_PARM_DESC(measure,
		 "compute the real SHA-256 MRENCLAVE; EINIT compares it with the SIGSTRUCT (slow)");

static void hash(struct sgx_secs *s, u64 *block, void *data)
{
	sha256_update(secs_sha(s), (u8 *)block, 64);
	if (data)
		sha256_update(secs_sha(s), data, 256);
}

/* Replaces the real measurement: not a hash, but different for different enclaves. */
static void mix(struct sgx_secs *s, u64 v)
{
	int i;

	for (i = 0; i < 8; i++)
		s->mrenclave[i] = (s->mrenclave[i] ^ (u32)(v ^ (v >> 32))) * 16777619u + i;
}

void measure_create(struct sgx_secs *s)
{
	u64 block[8] = {0x0045544145524345ull}; /* "ECREATE" */

	memset(s->mrenclave, 0, sizeof(s->mrenclave));
	if (!measure)
		return;
	memcpy((u8 *)block + 8, &s->ssa_frame_size, 4);
	memcpy((u8 *)block + 12, &s->size, 8);
	sha256_init(secs_sha(s));
	hash(s, block, NULL);
}

void measure_add(struct sgx_secs *s, u64 offset, struct sgx_secinfo *si)
{
	u64 block[8] = {0x44444145ull, offset}; /* "EADD" */

	if (!measure) {
		mix(s, offset + si->flags);
		return;
	}
	memcpy(block + 2, si, 48);
	hash(s, block, NULL);
}

void measure_extend(struct sgx_secs *s, u64 offset, void *data)
{
	u64 block[8] = {0x00444e4554584545ull, offset}; /* "EEXTEND" */

	if (measure)
		hash(s, block, data);
	else
		mix(s, offset + *(u64 *)data);
}

/* Compares the measurement with the signed one, at EINIT. */
int measure_check(struct sgx_secs *s, struct sgx_sigstruct *sig)
{
	if (!measure) { /* accept any */
		if (memchr_inv(sig->body.mrenclave, 0, 32))
			memcpy(s->mrenclave, sig->body.mrenclave, 32);
		return 0;
	}
	sha256_final(secs_sha(s), (u8 *)s->mrenclave);
	if (!memcmp(s->mrenclave, sig->body.mrenclave, 32))
		return 0;
	pr_info("MRENCLAVE %*phN, SIGSTRUCT says %*phN\n", 32, s->mrenclave, 32,
		sig->body.mrenclave);
	return ERR_INVALID_MEASUREMENT;
}
