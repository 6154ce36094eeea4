// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func enclaveOverEpcCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: `sgx.enclave_size = "256M"`, machine: mib128},
			{manifest: "a=1", machine: mib128}, // the default is 256M
			{manifest: `sgx.enclave_size = "256M"`, machine: mib128 + ", sgx2 yes, kernel 6.1.0"},
			{found: judged.EPCThrashing},
			{found: judged.LoadBackStalls},
		},
		near: []given{
			{manifest: `sgx.enclave_size = "128M"`, machine: mib128},
			{manifest: "sgx.edmm_enable = true\nsgx.enclave_size = \"256M\"", machine: mib128},
			{manifest: `sgx.enclave_size = "{{ size }}"`, template: true, machine: mib128},
		},
		negative: []given{
			{manifest: `sgx.enclave_size = "256M"`, found: "none"}, // no EPC is known
		},
	}
}
