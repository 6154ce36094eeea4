// SPDX-License-Identifier: Apache-2.0
// Makes ECALLs with a number of OCALLs each, in one or more threads. Each thread has its own TCS, and may have a thread
// outside that serves its OCALLs without an exit.
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "app.h"
#include "pingpong.h"

static long pause_us;

sgx_status_t pingpong_ocall_pong(void *ms)
{
	struct ping *ping = ms;
	double began = now();

	ping->sum++;
	if (pause_us)
		usleep(pause_us);
	ping->outside += now() - began;
	return SGX_SUCCESS;
}

static const struct {
	size_t count;
	sgx_bridge_fn_t ocall[1];
} ocall_table_pingpong = {1, {pingpong_ocall_pong}};

sgx_status_t pingpong_ecall_ping(sgx_enclave_id_t eid, struct ping *ping)
{
	return sgx_ecall(eid, ECALL_PING, &ocall_table_pingpong, ping);
}

static sgx_enclave_id_t eid;
static long pongs = 1, threads = 1, own, exitless, fresh;
static struct limit limit = {.count = 1000};

struct worker {
	pthread_t thread;
	long ecalls;
	unsigned long ocalls;
	double ecall_seconds, ocall_seconds;
	struct ping ping;
	int done;
};

static void *serve(void *arg)
{
	struct worker *w = arg;

	while (!__atomic_load_n(&w->done, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&w->ping.wanted, __ATOMIC_ACQUIRE)) {
			pingpong_ocall_pong(&w->ping);
			__atomic_store_n(&w->ping.wanted, 0, __ATOMIC_RELEASE);
		}
		__builtin_ia32_pause();
	}
	return NULL;
}

static void must_have(int fd)
{
	if (fd < 0) {
		perror("pingpong");
		exit(1);
	}
}

/* A new thread makes what one of Gramine makes for its wake-ups: a pair of sockets, one of them bound. */
static void make_pipe(void)
{
	const struct sockaddr_un any = {.sun_family = AF_UNIX}; /* the kernel chooses a name */
	int ends[2];

	for (int i = 0; i < 2; i++)
		must_have(ends[i] = socket(AF_UNIX, SOCK_STREAM, 0));
	must_have(bind(ends[0], (const void *)&any, sizeof(sa_family_t)));
	for (int i = 0; i < 2; i++)
		close(ends[i]);
}

static void *call(void *arg)
{
	struct worker *w = arg;
	double began;

	if (fresh)
		make_pipe();
	began = now();
	w->ping = (struct ping){.pongs = pongs, .exitless = exitless};
	must(pingpong_ecall_ping(eid, &w->ping), "ping");
	w->ecall_seconds += now() - began;
	w->ocall_seconds += w->ping.outside;
	w->ecalls++;
	w->ocalls += w->ping.sum;
	return NULL;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	pthread_t outside, one;

	if (exitless)
		pthread_create(&outside, NULL, serve, w);
	while (limit_more(&limit, w->ecalls)) {
		if (!fresh) {
			call(w);
			continue;
		}
		pthread_create(&one, NULL, call, w);
		pthread_join(one, NULL);
	}
	__atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
	if (exitless)
		pthread_join(outside, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	const struct option list[] = {
		{"count", &limit.count, "ECALLs of each thread; 0 means no limit"},
		{"seconds", &limit.seconds, "end after this time; 0 means no limit"},
		{"ocalls", &pongs, "OCALLs of each ECALL"},
		{"threads", &threads, "number of threads"},
		{"pause", &pause_us, "microseconds that each OCALL sleeps"},
		{"exitless", &exitless,
		 "1: each thread has one outside that serves its OCALLs without an exit"},
		{"fresh", &fresh,
		 "1: a new thread with a pair of sockets for each ECALL, as in Gramine"},
		{"own", &own, "1: enter by an ENCLU of the runtime, not through the vDSO"},
		{},
	};
	struct worker *workers, sum = {};
	double seconds;

	options(argc, argv, list);
	workers = calloc(threads, sizeof(*workers));
	eid = create_enclave("pingpong", &(struct testbed_config){.threads = threads, .own = own});
	if (own) // breakpoints in the runtime are set while there is an enclave
		stop_for_test();
	limit_start(&limit);
	for (long i = 0; i < threads; i++)
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	for (long i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		sum.ecalls += workers[i].ecalls;
		sum.ocalls += workers[i].ocalls;
		sum.ecall_seconds += workers[i].ecall_seconds;
		sum.ocall_seconds += workers[i].ocall_seconds;
	}
	seconds = limit_seconds(&limit);
	must(sgx_destroy_enclave(eid), "destroying the enclave");
	printf("{\"program\":\"pingpong\",\"seconds\":%.3f,\"ecalls\":%ld,\"ocalls\":%lu,"
	       "\"ecall_seconds\":%.6f,\"ocall_seconds\":%.6f}\n",
	       seconds, sum.ecalls, sum.ocalls, sum.ecall_seconds, sum.ocall_seconds);
	free(workers);
	return 0;
}
