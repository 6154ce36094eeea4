/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Functions that the untrusted halves of the programs share: options, time, and the enclave beside the program. */
#ifndef APP_H
#define APP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "../urts/sgx_urts.h"

struct option {
	const char *name; /* without the dash */
	long *value;	  /* holds the default */
	const char *help;
};

/* Reads "-name value" pairs. The table ends with an option without a name. Ends the program if a pair is invalid. */
void options(int argc, char **argv, const struct option *list);

/* Stops the program until SIGCONT if a test requests it. Options do so first. */
void stop_for_test(void);

double now(void); /* seconds, monotonic */

/* Creates the enclave NAME.enclave.so from the program's folder, or ends the program. */
sgx_enclave_id_t create_enclave(const char *name, const struct testbed_config *config);

/* Ends the program with a message when a status is not SGX_SUCCESS. */
void must(sgx_status_t status, const char *what);

/* Runs until a count or a time in seconds is reached (0: no limit), or until a signal. */
struct limit {
	long count, seconds;
	double start;
};
void limit_start(struct limit *l);
bool limit_more(const struct limit *l, long done);
void limit_wait(const struct limit *l, const long *done); /* while other threads count */
double limit_seconds(const struct limit *l);

#endif
