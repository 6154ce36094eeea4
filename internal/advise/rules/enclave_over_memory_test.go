// SPDX-License-Identifier: Apache-2.0

package rules

func enclaveOverMemoryCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: `sgx.enclave_size = "4G"`, machine: "memory_bytes 4294967296"}, // the manual's example
			{manifest: `sgx.enclave_size = "4G"`, machine: "memory_bytes 4294967296, swap_bytes 1073741824"},
			{manifest: `sgx.enclave_size = "4G"`, machine: "memory_bytes 4294967296, sgx2 yes, kernel 6.0"},
			{manifest: `sgx.enclave_size = "1G"`, machine: "memory_bytes 4294967296", live: several(runtimeSGX, 4)},
		},
		near: []given{
			{manifest: `sgx.enclave_size = "4G"`, machine: "memory_bytes 5476083302"},
			{manifest: "sgx.enclave_size = \"4G\"\nsgx.edmm_enable = true", machine: "memory_bytes 4294967296"},
			{manifest: `sgx.enclave_size = "1G"`, machine: "memory_bytes 4294967296", live: several(runtimeSGX, 3)},
			{manifest: `sgx.enclave_size = "1G"`, machine: "memory_bytes 4294967296", live: several(runtimeDirect, 4)}, // without enclaves
		},
		negative: []given{
			{manifest: "a=1", machine: "memory_bytes 4294967296"},
		},
	}
}
