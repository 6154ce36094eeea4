// SPDX-License-Identifier: Apache-2.0
// The exported functions: enclaves by ID, and ECALLs with their OCALLs.
#include <stdlib.h>
#include "urts.h"

#define MAX_ENCLAVES 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct enclave *enclaves[MAX_ENCLAVES];
static sgx_enclave_id_t next_id = 2; // as the SDK's
static struct testbed_config configuration;

static size_t or_default(size_t value, size_t otherwise)
{
	return value ? value : otherwise;
}

void testbed_configure(const struct testbed_config *config)
{
	configuration = *config;
}

static struct enclave **find(sgx_enclave_id_t eid)
{
	for (int i = 0; i < MAX_ENCLAVES; i++)
		if (enclaves[i] && enclaves[i]->id == eid)
			return &enclaves[i];
	return NULL;
}

static sgx_status_t keep(struct enclave *e)
{
	sgx_status_t status = SGX_ERROR_OUT_OF_MEMORY;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_ENCLAVES && status; i++)
		if (!enclaves[i]) {
			e->id = next_id++;
			enclaves[i] = e;
			status = SGX_SUCCESS;
		}
	pthread_mutex_unlock(&lock);
	return status;
}

sgx_status_t sgx_create_enclave(const char *file, int debug, sgx_launch_token_t *token,
				int *token_updated, sgx_enclave_id_t *eid,
				sgx_misc_attribute_t *attributes)
{
	struct testbed_config config = configuration;
	struct enclave *e = calloc(1, sizeof(*e));
	sgx_status_t status;

	(void)token, (void)attributes;
	if (token_updated)
		*token_updated = 0;
	if (!e || !file || !eid) {
		free(e);
		return SGX_ERROR_INVALID_PARAMETER;
	}
	config.threads = or_default(config.threads, 1);
	config.stack_pages = or_default(config.stack_pages, 8);
	e->fd = -1;
	e->own = config.own;
	pthread_mutex_init(&e->lock, NULL);
	status = vdso_find() ? build_enclave(e, file, debug, &config) : SGX_ERROR_NO_DEVICE;
	if (!status)
		status = keep(e);
	if (status) {
		drop_enclave(e);
		free(e);
		return status;
	}
	*eid = e->id;
	return SGX_SUCCESS;
}

sgx_status_t sgx_destroy_enclave(sgx_enclave_id_t eid)
{
	struct enclave **at, *e = NULL;

	pthread_mutex_lock(&lock);
	at = find(eid);
	if (at) {
		e = *at;
		*at = NULL;
	}
	pthread_mutex_unlock(&lock);
	if (!e)
		return SGX_ERROR_INVALID_ENCLAVE_ID;
	drop_enclave(e);
	free(e);
	return SGX_SUCCESS;
}

static struct enclave *lookup(sgx_enclave_id_t eid)
{
	struct enclave **at;

	pthread_mutex_lock(&lock);
	at = find(eid);
	pthread_mutex_unlock(&lock);
	return at ? *at : NULL;
}

void testbed_forked(sgx_enclave_id_t eid, size_t tcs)
{
	struct enclave *e = lookup(eid);

	for (size_t i = 0; e && i < e->threads; i++)
		e->taken[i] = i < tcs;
}

// Takes a free TCS, or returns -1. The SDK reuses the caller's TCS when an OCALL makes an ECALL; this
// runtime takes another one.
static int take_tcs(struct enclave *e)
{
	int found = -1;

	pthread_mutex_lock(&e->lock);
	for (size_t i = 0; i < e->threads && found < 0; i++)
		if (!e->taken[i]) {
			e->taken[i] = true;
			found = i;
		}
	pthread_mutex_unlock(&e->lock);
	return found;
}

static void give_tcs(struct enclave *e, int i)
{
	pthread_mutex_lock(&e->lock);
	e->taken[i] = false;
	pthread_mutex_unlock(&e->lock);
}

// Enters, and returns when the enclave has left by EEXIT. Exceptions are passed to its handler first.
static bool run(const struct enclave *e, uint64_t tcs, long command, void *arg, struct call *call)
{
	struct call handler;
	unsigned int leaf = EENTER;

	if (e->own)
		return !own_call(tcs, command, arg, call);
	for (;;) {
		if (vdso_call(tcs, leaf, command, arg, call))
			return false;
		if (call->leaf == EEXIT)
			return true;
		if (call->leaf != ERESUME) // EENTER itself faulted
			return false;
		if (vdso_call(tcs, EENTER, ECMD_EXCEPT, NULL, &handler) || handler.leaf != EEXIT ||
		    handler.value)
			return false;
		leaf = ERESUME;
	}
}

static sgx_status_t do_ecall(const struct enclave *e, uint64_t tcs, int index,
			     const struct sgx_ocall_table *table, void *ms)
{
	struct call call;
	long command = index;
	void *arg = ms;

	for (;;) {
		if (!run(e, tcs, command, arg, &call))
			return SGX_ERROR_ENCLAVE_CRASHED;
		if (call.reason == OCMD_ERET)
			return call.value;
		if (!table || call.reason < 0 || (size_t)call.reason >= table->count)
			return SGX_ERROR_INVALID_FUNCTION;
		command = ECMD_ORET;
		arg = (void *)(long)table->ocall[call.reason]((void *)call.value);
	}
}

sgx_status_t sgx_ecall(sgx_enclave_id_t eid, int index, const void *ocall_table, void *ms)
{
	struct enclave *e = lookup(eid);
	sgx_status_t status;
	int i;

	if (!e)
		return SGX_ERROR_INVALID_ENCLAVE_ID;
	if (index < 0)
		return SGX_ERROR_INVALID_FUNCTION;
	i = take_tcs(e);
	if (i < 0)
		return SGX_ERROR_OUT_OF_TCS;
	status = do_ecall(e, e->tcs[i], index, ocall_table, ms);
	give_tcs(e, i);
	return status;
}
