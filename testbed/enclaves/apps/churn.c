// SPDX-License-Identifier: Apache-2.0
// Creates enclaves, calls each and destroys it, in one process or in a child process for each.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "app.h"
#include "pingpong.h"

static const struct {
	size_t count;
} ocall_table_churn = {0};

static long pages = 64, live = 1, children, pause_us, ecalls;
static struct limit limit = {.count = 20}, calls = {.count = 1};

static sgx_enclave_id_t create(void)
{
	sgx_enclave_id_t eid =
		create_enclave("pingpong", &(struct testbed_config){.heap_pages = pages});

	for (long i = 0; limit_more(&calls, i); i++) {
		struct ping ping = {};

		must(sgx_ecall(eid, ECALL_PING, &ocall_table_churn, &ping), "calling an enclave");
		ecalls++;
		if (pause_us)
			usleep(pause_us);
	}
	return eid;
}

/* As Gramine does for a fork: a process has an enclave of its own. */
static void create_in_child(void)
{
	pid_t child = fork();
	int status;

	if (child < 0) {
		perror("churn: fork");
		exit(1);
	}
	if (!child) {
		must(sgx_destroy_enclave(create()), "destroying an enclave");
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		exit(1);
}

int main(int argc, char **argv)
{
	const struct option list[] = {
		{"count", &limit.count, "enclaves; 0 means no limit"},
		{"seconds", &limit.seconds, "end after this time; 0 means no limit"},
		{"pages", &pages, "heap of each"},
		{"live", &live, "how many live at a time, at most 64"},
		{"calls", &calls.count, "ECALLs of each; 0 means no limit"},
		{"fork", &children, "1: each lives in a child process, one at a time"},
		{"pause", &pause_us, "microseconds after each ECALL"},
		{},
	};
	sgx_enclave_id_t eids[64] = {};
	long enclaves = 0;

	options(argc, argv, list);
	if (!live || live > 64) {
		fprintf(stderr, "churn: 1 to 64 enclaves can live at a time\n");
		return 2;
	}
	limit_start(&limit);
	for (; limit_more(&limit, enclaves); enclaves++) {
		sgx_enclave_id_t *eid = &eids[enclaves % live];

		if (children) {
			create_in_child();
			ecalls += calls.count;
			continue;
		}
		if (*eid)
			must(sgx_destroy_enclave(*eid), "destroying an enclave");
		*eid = create();
	}
	for (long i = 0; i < live; i++)
		if (eids[i])
			must(sgx_destroy_enclave(eids[i]), "destroying an enclave");
	printf("{\"program\":\"churn\",\"seconds\":%.3f,\"enclaves\":%ld,\"ecalls\":%ld}\n",
	       limit_seconds(&limit), enclaves, ecalls);
	return 0;
}
