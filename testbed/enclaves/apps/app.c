// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "app.h"

static volatile sig_atomic_t stopped;

static void usage(const char *program, const struct option *list)
{
	fprintf(stderr, "usage: %s [options]\n", program);
	for (; list->name; list++)
		fprintf(stderr, "  -%-12s %s (%ld)\n", list->name, list->help, *list->value);
	exit(2);
}

void options(int argc, char **argv, const struct option *list)
{
	for (int i = 1; i < argc; i += 2) {
		const struct option *o = list;
		char *end;

		while (o->name && (argv[i][0] != '-' || strcmp(argv[i] + 1, o->name)))
			o++;
		if (!o->name || i + 1 == argc)
			usage(argv[0], list);
		errno = 0;
		*o->value = strtol(argv[i + 1], &end, 10);
		if (errno || *end || end == argv[i + 1] || *o->value < 0)
			usage(argv[0], list);
	}
	stop_for_test();
}

void stop_for_test(void)
{
	if (getenv("TESTBED_STOP")) // a test that first attaches something sends SIGCONT then
		raise(SIGSTOP);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void must(sgx_status_t status, const char *what)
{
	if (status == SGX_SUCCESS)
		return;
	fprintf(stderr, "%s: status 0x%x\n", what, status);
	exit(1);
}

sgx_enclave_id_t create_enclave(const char *name, const struct testbed_config *config)
{
	char self[PATH_MAX], file[2 * PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	sgx_enclave_id_t eid;

	if (n < 0) {
		perror("/proc/self/exe");
		exit(1);
	}
	self[n] = 0;
	snprintf(file, sizeof(file), "%s/%s.enclave.so", dirname(self), name);
	testbed_configure(config);
	must(sgx_create_enclave(file, 1, NULL, NULL, &eid, NULL), file);
	return eid;
}

static void stop(int signal)
{
	(void)signal;
	stopped = 1;
}

void limit_start(struct limit *l)
{
	struct sigaction action = {.sa_handler = stop};

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	l->start = now();
}

bool limit_more(const struct limit *l, long done)
{
	return !stopped && (!l->count || done < l->count) &&
	       (!l->seconds || now() - l->start < l->seconds);
}

void limit_wait(const struct limit *l, const long *done)
{
	while (limit_more(l, __atomic_load_n(done, __ATOMIC_RELAXED)))
		usleep(20000);
}

double limit_seconds(const struct limit *l)
{
	return now() - l->start;
}
