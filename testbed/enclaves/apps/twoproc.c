// SPDX-License-Identifier: Apache-2.0
// One enclave that a process and its child call at the same time. The child inherits the mapping. Each has
// its own TCS. Both keep the enclave alive, so the parent may end first.
#include <sys/wait.h>
#include <unistd.h>
#include "app.h"
#include "twoproc.h"

sgx_status_t twoproc_ocall_note(void *ms)
{
	((struct sum *)ms)->notes++;
	return SGX_SUCCESS;
}

static const struct {
	size_t count;
	sgx_bridge_fn_t ocall[1];
} ocall_table_twoproc = {1, {twoproc_ocall_note}};

static sgx_enclave_id_t eid;
static struct limit limit = {.count = 500};

static long call(struct sum *sum)
{
	long calls = 0;

	sum->n = 1;
	for (; limit_more(&limit, calls); calls++)
		must(sgx_ecall(eid, ECALL_ADD, &ocall_table_twoproc, sum), "adding");
	return calls;
}

static void report(const char *who, long calls, const struct sum *sum)
{
	printf("{\"program\":\"twoproc\",\"process\":\"%s\",\"pid\":%d,\"seconds\":%.3f,\"ecalls\":"
	       "%ld,"
	       "\"ocalls\":%lu,\"total\":%lu}\n",
	       who, getpid(), limit_seconds(&limit), calls, sum->notes, sum->total);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const struct option list[] = {
		{"count", &limit.count, "ECALLs of each process; 0 means no limit"},
		{"seconds", &limit.seconds, "end after this time; 0 means no limit"},
		{},
	};
	struct sum sum = {};
	int status;
	long calls;
	pid_t child;

	options(argc, argv, list);
	eid = create_enclave("twoproc", &(struct testbed_config){.threads = 2, .heap_pages = 64});
	limit_start(&limit);
	child = fork();
	if (child < 0) {
		perror("twoproc: fork");
		return 1;
	}
	if (!child)
		testbed_forked(eid, 1);
	calls = call(&sum);
	if (!child) {
		report("child", calls, &sum);
		return 0;
	}
	waitpid(child, &status, 0);
	sum.n = 0;
	must(sgx_ecall(eid, ECALL_ADD, &ocall_table_twoproc, &sum), "reading the total");
	report("parent", calls + 1, &sum);
	must(sgx_destroy_enclave(eid), "destroying the enclave");
	return status != 0;
}
