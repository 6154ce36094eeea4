// SPDX-License-Identifier: Apache-2.0

package rules

func mallocArenasCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.max_threads = 8"}, // 5 x 64 MiB of 256 MiB
			{manifest: "sgx.max_threads = 12\nsgx.enclave_size = \"1G\""},
		},
		near: []given{
			{manifest: "sgx.max_threads = 11\nsgx.enclave_size = \"1G\""}, // 512 MiB
			{manifest: "sgx.max_threads = 64\nsgx.enclave_size = \"1G\"\nloader.env.MALLOC_ARENA_MAX = \"1\""},
			{manifest: "sgx.max_threads = 64\nloader.env = { MALLOC_ARENA_MAX = \"1\" }"},
			{manifest: "sgx.max_threads = 64\nloader.env.MALLOC_ARENA_MAX = { passthrough = true }"},
			{manifest: "sgx.max_threads = 64\nsgx.edmm_enable = true"},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}
