// SPDX-License-Identifier: GPL-2.0-only
/*
 * ENCLU: EREPORT and EGETKEY. SDM "Key Derivation", "REPORT" and "KEYREQUEST".
 *
 * The keys are hashes of public values, so any process of the machine can compute them. Correct are the
 * conditions under which two enclaves get the same key, and the MAC of a report: AES-CMAC under the
 * report key.
 */
#include "swsgx.h"

#include <crypto/aes.h>
#include <crypto/sha2.h>

struct targetinfo {
	u8 mrenclave[32];
	u64 attributes, xfrm;
	u8 reserved0[4];
	u32 miscselect;
	u8 reserved1[456];
};

struct report {
	u8 cpusvn[16];
	u32 miscselect;
	u8 reserved0[28];
	u64 attributes, xfrm;
	u8 mrenclave[32], reserved1[32], mrsigner[32], reserved2[32], configid[64];
	u16 prodid, svn, configsvn;
	u8 reserved3[42], family[16], data[64], keyid[32], mac[16];
};

struct keyrequest {
	u16 name, policy, svn, reserved0;
	u8 cpusvn[16];
	u64 attributes_mask, xfrm_mask;
	u8 keyid[32];
	u32 misc_mask;
	u8 reserved1[436];
};

static_assert(sizeof(struct targetinfo) == 512);
static_assert(sizeof(struct report) == 432);
static_assert(sizeof(struct keyrequest) == 512);

enum { EINITTOKEN_KEY, PROVISION_KEY, PROVISION_SEAL_KEY, REPORT_KEY, SEAL_KEY };
#define POLICY_MRENCLAVE 1
#define POLICY_MRSIGNER	 2

/* The values that a key depends on, besides its label. */
struct derivation {
	u64 attributes, xfrm;
	u8 mrenclave[32], mrsigner[32], cpusvn[16], keyid[32];
	u16 prodid, svn, policy, name;
	u32 miscselect, zero;
};

static void derive(u8 *key, const struct derivation *d)
{
	static const char label[] = "swsgx no secret";
	struct sha256_state h;
	u8 out[32];

	sha256_init(&h);
	sha256_update(&h, (const u8 *)label, sizeof(label));
	sha256_update(&h, (const u8 *)d, sizeof(*d));
	sha256_final(&h, out);
	memcpy(key, out, 16);
}

/* The key with which reports for an enclave are signed. */
static void report_key(u8 *key, const void *mrenclave, u64 attributes, u64 xfrm, const u8 *keyid)
{
	struct derivation d = {.attributes = attributes, .xfrm = xfrm, .name = REPORT_KEY};

	memcpy(d.mrenclave, mrenclave, 32);
	memcpy(d.keyid, keyid, 32);
	derive(key, &d);
}

/* AES-CMAC (RFC 4493) of whole blocks. */
static void cmac(const u8 *key, const u8 *message, int n, u8 *mac)
{
	struct crypto_aes_ctx aes;
	u8 x[16] = {}, k1[16] = {};
	int i, j, top;

	aes_expandkey(&aes, key, 16);
	aes_encrypt(&aes, k1, k1);
	top = k1[0] >> 7;
	for (i = 0; i < 16; i++)
		k1[i] = k1[i] << 1 | (i < 15 ? k1[i + 1] >> 7 : 0);
	if (top)
		k1[15] ^= 0x87;
	for (i = 0; i < n; i += 16) {
		for (j = 0; j < 16; j++)
			x[j] ^= message[i + j] ^ (i + 16 == n ? k1[j] : 0);
		aes_encrypt(&aes, x, x);
	}
	memcpy(mac, x, 16);
}

static void fill_report(struct report *rep, struct sgx_secs *s, const u8 *data)
{
	memset(rep, 0, sizeof(*rep));
	memset(rep->cpusvn, 1, sizeof(rep->cpusvn));
	rep->miscselect = s->miscselect;
	rep->attributes = s->attributes;
	rep->xfrm = s->xfrm;
	memcpy(rep->mrenclave, s->mrenclave, 32);
	memcpy(rep->mrsigner, s->mrsigner, 32);
	memcpy(rep->configid, s->config_id, 64);
	rep->prodid = s->isv_prod_id;
	rep->svn = s->isv_svn;
	rep->configsvn = s->config_svn;
	memcpy(rep->data, data, sizeof(rep->data));
}

int ereport(struct pt_regs *r)
{
	struct epcm *tcs = inside();
	struct targetinfo *target, t;
	struct report *rep;
	u8 *data, copy[64], key[16];
	int ret = 0;

	if (!tcs)
		return GP;
	target = operand(tcs, r->bx, 512, &ret);
	data = target ? operand(tcs, r->cx, 128, &ret) : NULL;
	rep = data ? operand(tcs, r->dx, 512, &ret) : NULL;
	if (!rep)
		return ret;
	t = *target; /* the three may overlap */
	memcpy(copy, data, sizeof(copy));
	fill_report(rep, tcs->secs->va, copy);
	report_key(key, t.mrenclave, t.attributes, t.xfrm, rep->keyid);
	cmac(key, (u8 *)rep, offsetof(struct report, keyid), rep->mac);
	r->ip += 3;
	return 0;
}

/* Sealing and provisioning keys. */
static int bound_key(u8 *key, const struct keyrequest *k, struct sgx_secs *s)
{
	struct derivation d = {
		.attributes = s->attributes & (k->attributes_mask | SGX_ATTR_INIT | SGX_ATTR_DEBUG),
		.xfrm = s->xfrm & k->xfrm_mask,
		.prodid = s->isv_prod_id,
		.svn = k->svn,
		.policy = k->policy,
		.name = k->name,
		.miscselect = s->miscselect & k->misc_mask,
	};

	if (k->svn > s->isv_svn)
		return ERR_INVALID_ISVSVN;
	if (k->policy & POLICY_MRENCLAVE)
		memcpy(d.mrenclave, s->mrenclave, 32);
	if (k->policy & POLICY_MRSIGNER)
		memcpy(d.mrsigner, s->mrsigner, 32);
	memcpy(d.cpusvn, k->cpusvn, sizeof(d.cpusvn));
	memcpy(d.keyid, k->keyid, sizeof(d.keyid));
	derive(key, &d);
	return 0;
}

static int get_key(u8 *key, const struct keyrequest *k, struct sgx_secs *s)
{
	bool provision = s->attributes & SGX_ATTR_PROVISIONKEY;

	switch (k->name) {
	case REPORT_KEY:
		report_key(key, s->mrenclave, s->attributes, s->xfrm, k->keyid);
		return 0;
	case PROVISION_KEY:
	case PROVISION_SEAL_KEY:
		return provision ? bound_key(key, k, s) : ERR_INVALID_ATTRIBUTE;
	case SEAL_KEY:
		return bound_key(key, k, s);
	}
	return ERR_INVALID_KEYNAME;
}

int egetkey(struct pt_regs *r)
{
	struct epcm *tcs = inside();
	struct keyrequest *request, k;
	int ret = 0;
	u8 *out;

	if (!tcs)
		return GP;
	request = operand(tcs, r->bx, 512, &ret);
	out = request ? operand(tcs, r->cx, 16, &ret) : NULL;
	if (!out)
		return ret;
	k = *request;
	r->ax = get_key(out, &k, tcs->secs->va);
	r->flags = r->ax ? r->flags | X86_EFLAGS_ZF : r->flags & ~X86_EFLAGS_ZF;
	r->ip += 3;
	return 0;
}
