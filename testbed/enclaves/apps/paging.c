// SPDX-License-Identifier: Apache-2.0
// An enclave that writes and checks a part of its heap, the working set, repeatedly. The working set may
// move by some pages after each pass.
#include <stdlib.h>
#include "app.h"
#include "paging.h"

static const struct {
	size_t count;
} ocall_table_paging = {0};

static long mib = 32, working = 8, shift, dynamic;
static struct limit limit = {.count = 10};

int main(int argc, char **argv)
{
	const struct option list[] = {
		{"mib", &mib, "size of the heap"},
		{"dynamic", &dynamic, "MiB of it that are added while the enclave runs (SGX2)"},
		{"working", &working, "MiB of it that each pass accesses"},
		{"shift", &shift, "pages by which the working set moves after each pass"},
		{"count", &limit.count, "passes; 0 means no limit"},
		{"seconds", &limit.seconds, "end after this time; 0 means no limit"},
		{},
	};
	struct touch touch = {};
	long passes = 0, touched = 0, errors = 0, accepted;
	sgx_enclave_id_t eid;

	options(argc, argv, list);
	if (!working || working > mib || dynamic > mib) {
		fprintf(stderr, "paging: -working must be 1 to -mib, and -dynamic at most -mib\n");
		return 2;
	}
	eid = create_enclave("paging", &(struct testbed_config){.heap_pages = (mib - dynamic) * 256,
								.dynamic_pages = dynamic * 256});
	limit_start(&limit);
	if (dynamic)
		must(sgx_ecall(eid, ECALL_ACCEPT, &ocall_table_paging, &touch), "growing");
	accepted = touch.pages;
	for (; limit_more(&limit, passes); passes++) {
		touch.pages = working * 256;
		touch.first = passes * shift % (mib * 256 - touch.pages + 1);
		touch.seed = passes;
		must(sgx_ecall(eid, ECALL_WRITE, &ocall_table_paging, &touch), "writing");
		must(sgx_ecall(eid, ECALL_CHECK, &ocall_table_paging, &touch), "checking");
		touched += 2 * touch.pages;
		errors += touch.errors;
	}
	printf("{\"program\":\"paging\",\"seconds\":%.3f,\"ecalls\":%ld,\"passes\":%ld,\"touched\":"
	       "%ld,"
	       "\"accepted\":%ld,\"errors\":%ld}\n",
	       limit_seconds(&limit), 2 * passes + !!dynamic, passes, touched, accepted, errors);
	must(sgx_destroy_enclave(eid), "destroying the enclave");
	return errors != 0;
}
