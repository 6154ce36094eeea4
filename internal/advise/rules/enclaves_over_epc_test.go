// SPDX-License-Identifier: Apache-2.0

package rules

func enclavesOverEpcCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: `sgx.enclave_size = "32M"`, stats: started, procs: 5, machine: mib128},
			{manifest: `sgx.enclave_size = "64M"`, stats: started, procs: 3, machine: mib128 + ", sgx2 yes, kernel 6.1.0"},
		},
		near: []given{
			{manifest: `sgx.enclave_size = "32M"`, stats: started, procs: 4, machine: mib128},  // exactly the EPC
			{manifest: `sgx.enclave_size = "256M"`, stats: started, procs: 3, machine: mib128}, // one does not fit: another rule's
			{manifest: "sgx.edmm_enable = true\nsgx.enclave_size = \"64M\"", stats: started, procs: 3, machine: mib128},
		},
		negative: []given{
			{manifest: `sgx.enclave_size = "128M"`, stats: started, machine: mib128},
		},
	}
}
