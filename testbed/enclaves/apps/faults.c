// SPDX-License-Identifier: Apache-2.0
// Causes exceptions inside an enclave: each is an AEX, a call of the enclave's handler and an ERESUME. Also
// spins, which the timer interrupts.
#include <pthread.h>
#include <unistd.h>
#include "app.h"
#include "faults.h"

static const struct {
	size_t count;
} ocall_table_faults = {0};

static long cpuid = 100, rdtsc = 100, ud2 = 100, spin;

static void *stop_later(void *arg)
{
	struct faults *f = arg;

	usleep(spin * 1000);
	f->stop = 1;
	return NULL;
}

int main(int argc, char **argv)
{
	const struct option list[] = {
		{"cpuid", &cpuid, "CPUIDs"},
		{"rdtsc", &rdtsc, "RDTSCs"},
		{"ud2", &ud2, "UD2s"},
		{"spin", &spin, "milliseconds to spin"},
		{},
	};
	struct faults faults, spinning = {};
	sgx_enclave_id_t eid;
	pthread_t thread;
	double start = now();

	options(argc, argv, list);
	faults = (struct faults){.cpuid = cpuid, .rdtsc = rdtsc, .ud2 = ud2};
	eid = create_enclave("faults", &(struct testbed_config){});
	must(sgx_ecall(eid, ECALL_FAULTS, &ocall_table_faults, &faults), "faulting");
	pthread_create(&thread, NULL, stop_later, &spinning);
	must(sgx_ecall(eid, ECALL_SPIN, &ocall_table_faults, &spinning), "spinning");
	pthread_join(thread, NULL);
	must(sgx_destroy_enclave(eid), "destroying the enclave");
	printf("{\"program\":\"faults\",\"seconds\":%.3f,\"ecalls\":2,\"cpuid\":%lu,\"rdtsc\":%lu,"
	       "\"ud2\":%lu,\"other\":%lu,\"spins\":%lu}\n",
	       now() - start, faults.cpuid, faults.rdtsc, faults.ud2, faults.other, spinning.spins);
	return 0;
}
