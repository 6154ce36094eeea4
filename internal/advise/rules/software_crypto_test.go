// SPDX-License-Identifier: Apache-2.0

package rules

func softwareCryptoCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "a=1", profile: "AES_encrypt 6, gcm_ghash_4bit 4, work 90"},
			{manifest: "sgx.require_amx = false", profile: "AES_encrypt 60, work 40"},
			{manifest: "sgx.require_avx = false", profile: "_x86_64_AES_encrypt_compact 40, AES_encrypt 60"},
		},
		near: []given{
			{manifest: "a=1", profile: "AES_encrypt 9.9, work 90.1"},
			{manifest: "a=1", profile: "aesni_ctr32_encrypt_blocks 60, sha256_block_data_order_avx2 30, work 10"},
			{manifest: "sgx.cpu_features.avx = \"required\"", profile: "AES_encrypt 60, work 40"},
			{manifest: "sgx.require_avx = true", profile: "AES_encrypt 60, work 40"},
		},
		negative: []given{
			{manifest: "a=1", profile: "work 1"},
		},
	}
}
