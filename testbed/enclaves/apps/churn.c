// SPDX-License-Identifier: Apache-2.0
// Creates enclaves, calls each once and destroys it.
#include "app.h"
#include "pingpong.h"

static const struct {
	size_t count;
} ocall_table_churn = {0};

static long pages = 64, live = 1;
static struct limit limit = {.count = 20};

int main(int argc, char **argv)
{
	const struct option list[] = {
		{"count", &limit.count, "enclaves; 0 means no limit"},
		{"seconds", &limit.seconds, "end after this time; 0 means no limit"},
		{"pages", &pages, "heap of each"},
		{"live", &live, "how many live at a time, at most 64"},
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
		struct ping ping = {};

		if (*eid)
			must(sgx_destroy_enclave(*eid), "destroying an enclave");
		*eid = create_enclave("pingpong", &(struct testbed_config){.heap_pages = pages});
		must(sgx_ecall(*eid, ECALL_PING, &ocall_table_churn, &ping), "calling an enclave");
	}
	for (long i = 0; i < live; i++)
		if (eids[i])
			must(sgx_destroy_enclave(eids[i]), "destroying an enclave");
	printf("{\"program\":\"churn\",\"seconds\":%.3f,\"enclaves\":%ld,\"ecalls\":%ld}\n",
	       limit_seconds(&limit), enclaves, enclaves);
	return 0;
}
