// SPDX-License-Identifier: Apache-2.0
// A key-value server: one thread and one ECALL per connection. The enclave receives and sends by OCALLs.
// The protocol is in kv.h. kvload is a client.
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "app.h"
#include "kv.h"

sgx_status_t kv_ocall_recv(void *ms)
{
	struct kv_conn *c = ms;
	ssize_t n;

	c->ocalls[OCALL_RECV]++;
	n = recv(c->fd, c->in + c->got, c->want ? c->want : sizeof(c->in) - c->got,
		 c->want ? MSG_WAITALL : 0);
	if (n < 0)
		return SGX_ERROR_UNEXPECTED;
	c->got += n;
	return SGX_SUCCESS;
}

sgx_status_t kv_ocall_send(void *ms)
{
	struct kv_conn *c = ms;

	c->ocalls[OCALL_SEND]++;
	for (uint32_t at = 0; at < c->want;) {
		ssize_t n = send(c->fd, c->out + at, c->want - at, MSG_NOSIGNAL);

		if (n <= 0)
			return SGX_ERROR_UNEXPECTED;
		at += n;
	}
	return SGX_SUCCESS;
}

static const struct {
	size_t count;
	sgx_bridge_fn_t ocall[OCALLS];
} ocall_table_kv = {OCALLS, {kv_ocall_recv, kv_ocall_send}};

sgx_status_t kv_ecall_serve(sgx_enclave_id_t eid, struct kv_conn *c)
{
	return sgx_ecall(eid, ECALL_SERVE, &ocall_table_kv, c);
}

static sgx_enclave_id_t eid;
static long port = 7000, threads = 4, mib = 16, chatty;
static struct limit limit;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int listener;
static long accepted, ecalls;
static uint64_t requests, ocalls[OCALLS];

static void serve(int fd)
{
	struct kv_conn *c = calloc(1, sizeof(*c));
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c->fd = fd;
	c->chatty = chatty;
	if (kv_ecall_serve(eid, c))
		fprintf(stderr, "kv: a connection ended with an error\n");
	close(fd);
	pthread_mutex_lock(&mutex);
	ecalls++;
	requests += c->requests;
	for (int i = 0; i < OCALLS; i++)
		ocalls[i] += c->ocalls[i];
	pthread_mutex_unlock(&mutex);
	free(c);
}

// Accepts connections up to the limit. The thread that takes the last one shuts the socket down.
static void *work(void *arg)
{
	(void)arg;
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		bool last;

		if (fd < 0) {
			if (errno == EINTR && limit_more(&limit, accepted))
				continue;
			return NULL;
		}
		pthread_mutex_lock(&mutex);
		last = limit.count && ++accepted >= limit.count;
		pthread_mutex_unlock(&mutex);
		if (last)
			shutdown(listener, SHUT_RDWR);
		serve(fd);
	}
}

static int listen_on(long number)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(number)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (void *)&address, sizeof(address)) || listen(fd, 64)) {
		perror("kv: listening");
		exit(1);
	}
	return fd;
}

int main(int argc, char **argv)
{
	const struct option list[] = {
		{"port", &port, "TCP port"},
		{"threads", &threads, "concurrent connections"},
		{"mib", &mib, "size of the table"},
		{"count", &limit.count, "end after this number of connections; 0 means no limit"},
		{"seconds", &limit.seconds, "end after this time; 0 means no limit"},
		{"chatty", &chatty, "1: an OCALL for each piece of a request"},
		{},
	};
	pthread_t *workers;

	options(argc, argv, list);
	eid = create_enclave("kv",
			     &(struct testbed_config){.threads = threads, .heap_pages = mib * 256});
	listener = listen_on(port);
	workers = calloc(threads, sizeof(*workers));
	limit_start(&limit);
	for (long i = 0; i < threads; i++)
		pthread_create(&workers[i], NULL, work, NULL);
	limit_wait(&limit, &accepted);
	shutdown(listener, SHUT_RDWR); // wakes the threads that wait for a connection
	for (long i = 0; i < threads; i++)
		pthread_join(workers[i], NULL);
	must(sgx_destroy_enclave(eid), "destroying the enclave");
	printf("{\"program\":\"kv\",\"seconds\":%.3f,\"ecalls\":%ld,\"ocalls\":%lu,\"recv\":%lu,"
	       "\"send\":%lu,"
	       "\"requests\":%lu}\n",
	       limit_seconds(&limit), ecalls, ocalls[OCALL_RECV] + ocalls[OCALL_SEND],
	       ocalls[OCALL_RECV], ocalls[OCALL_SEND], requests);
	return 0;
}
