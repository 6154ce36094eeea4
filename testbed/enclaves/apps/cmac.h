/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* AES-CMAC (RFC 4493) of whole blocks by the processor's AES instructions, independent of the kernel's code. */
#ifndef CMAC_H
#define CMAC_H

#include <stdint.h>

void aes_cmac(const uint8_t key[16], const uint8_t *message, int n, uint8_t mac[16]);

#endif
