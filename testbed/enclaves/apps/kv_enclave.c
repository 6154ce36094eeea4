// SPDX-License-Identifier: Apache-2.0
// A hash table in the enclave's heap, and the protocol. All input and output uses OCALLs.
#include "../trts/trts.h"
#include "kv.h"

struct slot {
	uint16_t key_size, value_size; // a slot without a key is free
	uint32_t unused;
	uint8_t key[KV_KEY], value[KV_VALUE];
};
_Static_assert(sizeof(struct slot) == 512, "eight to a page");

#define PROBES 16
static uint8_t locked;

static uint64_t hash(const uint8_t *key, size_t n)
{
	uint64_t h = 0xcbf29ce484222325; // FNV-1a

	for (size_t i = 0; i < n; i++)
		h = (h ^ key[i]) * 0x100000001b3;
	return h;
}

// Returns the slot of a key, else a free slot that the key can use, else NULL.
static struct slot *find(const uint8_t *key, size_t n, uint64_t h)
{
	struct slot *slots = heap(), *empty = NULL;
	size_t count = heap_size() / sizeof(*slots);

	for (size_t i = 0; i < PROBES; i++) {
		struct slot *s = &slots[(h + i) % count];

		if (s->key_size == n && !memcmp(s->key, key, n))
			return s;
		if (!s->key_size && !empty)
			empty = s;
	}
	return empty;
}

static uint8_t get(const uint8_t *key, size_t n, uint8_t *value, uint16_t *size)
{
	struct slot *s = find(key, n, hash(key, n));

	*size = 0;
	if (!s || !s->key_size)
		return KV_MISSING;
	memcpy(value, s->value, s->value_size);
	*size = s->value_size;
	return KV_OK;
}

static uint8_t set(const uint8_t *key, size_t n, const uint8_t *value, uint16_t size)
{
	struct slot *s = find(key, n, hash(key, n));

	if (!s)
		return KV_FULL;
	memcpy(s->key, key, n);
	memcpy(s->value, value, size);
	s->value_size = size;
	s->key_size = n;
	return KV_OK;
}

// Neighbouring keys share slots, so there is one lock for all. It is held for a few hundred instructions.
static void lock(void)
{
	while (__atomic_exchange_n(&locked, 1, __ATOMIC_ACQUIRE))
		__builtin_ia32_pause();
}

static void unlock(void)
{
	__atomic_store_n(&locked, 0, __ATOMIC_RELEASE);
}

// Executes one request, which is copied into the enclave first. Returns the size of the reply's value.
static uint16_t serve(struct kv_header *header, const uint8_t *body, uint8_t *value)
{
	uint16_t size = 0;

	lock();
	if (header->op == KV_GET)
		header->op = get(body, header->key, value, &size);
	else
		header->op = set(body, header->key, body + header->key, header->value);
	unlock();
	header->key = 0;
	header->value = size;
	return size;
}

static int valid(const struct kv_header *h)
{
	return (h->op == KV_GET || h->op == KV_SET) && h->key && h->key <= KV_KEY &&
	       h->value <= (h->op == KV_SET ? KV_VALUE : 0);
}

// Receives into the connection's buffer. Returns 0 at the end of the connection.
static uint32_t receive(struct kv_conn *c, uint32_t have, uint32_t want)
{
	c->got = have;
	c->want = want;
	if (ocall(OCALL_RECV, c) || c->got < have || c->got > sizeof(c->in))
		return 0;
	return c->got - have;
}

static long send(struct kv_conn *c, uint32_t n)
{
	c->want = n;
	return ocall(OCALL_SEND, c);
}

// Serves one request at a time, and one piece of it at a time.
static long serve_chatty(struct kv_conn *c)
{
	uint8_t body[KV_KEY + KV_VALUE], value[KV_VALUE];
	struct kv_header h;

	while (receive(c, 0, sizeof(h)) == sizeof(h)) {
		memcpy(&h, c->in, sizeof(h));
		if (!valid(&h) || receive(c, 0, h.key) != h.key)
			return 1;
		memcpy(body, c->in, h.key);
		if (h.value && receive(c, 0, h.value) != h.value)
			return 1;
		memcpy(body + h.key, c->in, h.value);
		serve(&h, body, value);
		memcpy(c->out, &h, sizeof(h));
		if (send(c, sizeof(h)))
			return 1;
		memcpy(c->out, value, h.value);
		if (h.value && send(c, h.value))
			return 1;
		c->requests++;
	}
	return 0;
}

// Serves the complete requests in n received bytes. Returns the number of their bytes, or -1.
static long serve_batch(struct kv_conn *c, uint32_t n, uint32_t *out)
{
	uint8_t body[KV_KEY + KV_VALUE], value[KV_VALUE];
	struct kv_header h;
	uint32_t at = 0;

	while (n - at >= sizeof(h)) {
		memcpy(&h, c->in + at, sizeof(h));
		if (!valid(&h))
			return -1;
		if (n - at < sizeof(h) + h.key + h.value ||
		    *out + sizeof(h) + KV_VALUE > sizeof(c->out))
			break;
		memcpy(body, c->in + at + sizeof(h), h.key + h.value);
		at += sizeof(h) + h.key + h.value;
		serve(&h, body, value);
		memcpy(c->out + *out, &h, sizeof(h));
		memcpy(c->out + *out + sizeof(h), value, h.value);
		*out += sizeof(h) + h.value;
		c->requests++;
	}
	return at;
}

static long serve_batches(struct kv_conn *c)
{
	uint32_t have = 0;

	for (;;) {
		uint32_t got = receive(c, have, 0), out = 0;
		long used;

		if (!got)
			return have != 0;
		have += got;
		used = serve_batch(c, have, &out);
		if (used < 0 || (out && send(c, out)))
			return 1;
		memcpy(c->in, c->in + used, have - used); // to a lower address: no memmove needed
		have -= used;
	}
}

long enclave_ecall(long index, void *ms)
{
	struct kv_conn *c = ms;

	if (index != ECALL_SERVE)
		return 1;
	return c->chatty ? serve_chatty(c) : serve_batches(c);
}
