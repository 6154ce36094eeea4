// SPDX-License-Identifier: Apache-2.0
// Puts load on a key-value server (kv): opens connections, keeps a number of requests pending on each, and
// checks each reply against its key.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "app.h"
#include "kv.h"

static long port = 7000, connections = 2, depth = 1, keys = 10000, value_size = 64, writes = 20;
static struct limit limit = {.count = 1000};

struct request {
	uint32_t key;
	bool write;
	double sent;
};

struct client {
	pthread_t thread;
	int fd;
	uint64_t random;
	long requests, hits, missing, errors;
	double *latency; // seconds; the first LATENCIES requests
};
#define LATENCIES 100000

static uint32_t next(struct client *c)
{
	c->random ^= c->random << 13; // xorshift64
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random >> 32;
}

// A value starts with the key's number, and is filled with its low byte.
static void fill(uint8_t *value, uint32_t key)
{
	memset(value, key, value_size);
	memcpy(value, &key, sizeof(key));
}

static bool write_all(int fd, const void *data, size_t n)
{
	for (ssize_t done; n; n -= done, data = (const char *)data + done) {
		done = send(fd, data, n, MSG_NOSIGNAL);
		if (done <= 0)
			return false;
	}
	return true;
}

static bool ask(struct client *c, struct request *r)
{
	uint8_t out[sizeof(struct kv_header) + 9 + KV_VALUE];
	struct kv_header h = {.key = 9};

	r->key = next(c) % keys;
	r->write = next(c) % 100 < writes;
	h.op = r->write ? KV_SET : KV_GET;
	h.value = r->write ? value_size : 0;
	memcpy(out, &h, sizeof(h));
	snprintf((char *)out + sizeof(h), 10, "k%08x", r->key);
	fill(out + sizeof(h) + 9, r->key);
	r->sent = now();
	return write_all(c->fd, out, sizeof(h) + h.key + h.value);
}

static bool hear(struct client *c, const struct request *r)
{
	uint8_t value[KV_VALUE], want[KV_VALUE];
	struct kv_header h;

	if (recv(c->fd, &h, sizeof(h), MSG_WAITALL) != sizeof(h) || h.value > sizeof(value) ||
	    (h.value && recv(c->fd, value, h.value, MSG_WAITALL) != h.value))
		return false;
	if (c->requests < LATENCIES)
		c->latency[c->requests] = now() - r->sent;
	c->requests++;
	fill(want, r->key);
	if (!r->write && h.op == KV_MISSING)
		c->missing++;
	else if (h.op != KV_OK ||
		 (!r->write && (h.value != value_size || memcmp(value, want, h.value))))
		c->errors++;
	else if (!r->write)
		c->hits++;
	return true;
}

static void *work(void *arg)
{
	struct client *c = arg;
	struct request *ring = calloc(depth, sizeof(*ring));
	long asked = 0;

	for (;;) {
		while (asked - c->requests < depth && limit_more(&limit, asked))
			if (!ask(c, &ring[asked++ % depth])) {
				c->errors++;
				goto out;
			}
		if (asked == c->requests)
			break;
		if (!hear(c, &ring[c->requests % depth])) {
			c->errors++;
			break;
		}
	}
out:
	close(c->fd);
	free(ring);
	return NULL;
}

// Connects. Waits for a server that has just been started.
static int connect_to(long number)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(number)};
	int fd, one = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (double start = now(); now() - start < 30; usleep(20000)) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (!connect(fd, (void *)&address, sizeof(address))) {
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			return fd;
		}
		close(fd);
	}
	fprintf(stderr, "kvload: no server listens on port %ld\n", number);
	exit(1);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(struct client *clients, double seconds)
{
	double *latency = calloc(connections, LATENCIES * sizeof(*latency));
	struct client sum = {};
	long n = 0;

	for (long i = 0; i < connections; i++) {
		struct client *c = &clients[i];
		long some = c->requests < LATENCIES ? c->requests : LATENCIES;

		memcpy(latency + n, c->latency, some * sizeof(*latency));
		n += some;
		sum.requests += c->requests;
		sum.hits += c->hits;
		sum.missing += c->missing;
		sum.errors += c->errors;
	}
	qsort(latency, n, sizeof(*latency), by_value);
	printf("{\"program\":\"kvload\",\"seconds\":%.3f,\"requests\":%ld,\"hits\":%ld,\"missing\":"
	       "%ld,"
	       "\"errors\":%ld,\"p50_us\":%.0f,\"p99_us\":%.0f}\n",
	       seconds, sum.requests, sum.hits, sum.missing, sum.errors,
	       n ? latency[n / 2] * 1e6 : 0, n ? latency[n * 99 / 100] * 1e6 : 0);
	exit(sum.errors != 0);
}

int main(int argc, char **argv)
{
	const struct option list[] = {
		{"port", &port, "TCP port of the server on 127.0.0.1"},
		{"connections", &connections, "number of connections, with one thread each"},
		{"depth", &depth, "pending requests on each connection"},
		{"keys", &keys, "number of different keys"},
		{"value", &value_size, "bytes of a value, 4 to 472"},
		{"writes", &writes, "percentage of writes"},
		{"count", &limit.count, "requests of each connection; 0 means no limit"},
		{"seconds", &limit.seconds, "end after this time; 0 means no limit"},
		{},
	};
	struct client *clients;

	options(argc, argv, list);
	if (value_size < 4 || value_size > KV_VALUE || !keys || !depth) {
		fprintf(stderr, "kvload: -value must be 4 to 472, -keys and -depth at least 1\n");
		return 2;
	}
	clients = calloc(connections, sizeof(*clients));
	for (long i = 0; i < connections; i++) {
		clients[i].fd = connect_to(port);
		clients[i].random = 88172645463325252 + i;
		clients[i].latency = calloc(LATENCIES, sizeof(double));
	}
	limit_start(&limit);
	for (long i = 0; i < connections; i++)
		pthread_create(&clients[i].thread, NULL, work, &clients[i]);
	for (long i = 0; i < connections; i++)
		pthread_join(clients[i].thread, NULL);
	report(clients, limit_seconds(&limit));
}
