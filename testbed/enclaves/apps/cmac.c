// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <wmmintrin.h>
#include "cmac.h"

#define AES __attribute__((target("aes,sse4.1")))

AES static __m128i next_key(__m128i key, __m128i assist)
{
	key = _mm_xor_si128(key, _mm_slli_si128(key, 4));
	key = _mm_xor_si128(key, _mm_slli_si128(key, 8));
	return _mm_xor_si128(key, _mm_shuffle_epi32(assist, 0xff));
}

AES static void expand(const uint8_t *key, __m128i k[11])
{
	k[0] = _mm_loadu_si128((const __m128i *)key);
#define ROUND(i, constant) k[i] = next_key(k[i - 1], _mm_aeskeygenassist_si128(k[i - 1], constant))
	ROUND(1, 0x01);
	ROUND(2, 0x02);
	ROUND(3, 0x04);
	ROUND(4, 0x08);
	ROUND(5, 0x10);
	ROUND(6, 0x20);
	ROUND(7, 0x40);
	ROUND(8, 0x80);
	ROUND(9, 0x1b);
	ROUND(10, 0x36);
#undef ROUND
}

AES static void encrypt(const __m128i k[11], uint8_t x[16])
{
	__m128i v = _mm_xor_si128(_mm_loadu_si128((const __m128i *)x), k[0]);

	for (int i = 1; i < 10; i++)
		v = _mm_aesenc_si128(v, k[i]);
	_mm_storeu_si128((__m128i *)x, _mm_aesenclast_si128(v, k[10]));
}

void aes_cmac(const uint8_t key[16], const uint8_t *message, int n, uint8_t mac[16])
{
	uint8_t sub[16] = {}, top;
	__m128i k[11];

	expand(key, k);
	encrypt(k, sub);
	top = sub[0] >> 7;
	for (int i = 0; i < 16; i++)
		sub[i] = sub[i] << 1 | (i < 15 ? sub[i + 1] >> 7 : 0);
	sub[15] ^= top ? 0x87 : 0;
	memset(mac, 0, 16);
	for (int at = 0; at < n; at += 16) {
		for (int i = 0; i < 16; i++)
			mac[i] ^= message[at + i] ^ (at + 16 == n ? sub[i] : 0);
		encrypt(k, mac);
	}
}
