// SPDX-License-Identifier: Apache-2.0

package rules

func configOverEpcCases() ruleCases {
	return ruleCases{
		positive: []given{
			{config: `{"heapSize": 129}`, machine: mib128},
			{config: `{"resource_limits": {"user_space_size": "100MB", "kernel_space_heap_size": "32MB"}}`, machine: mib128},
			{config: "NumHeapPages=32769\n", machine: mib128},
			{config: "SCONE_HEAP=1G\nSCONE_MODE=hw", machine: mib128},
		},
		near: []given{
			{config: `{"heapSize": 128}`, machine: mib128},
			{config: "NumHeapPages=32768\n", machine: mib128},
			{config: "SCONE_HEAP=1G\nSCONE_MODE=sim", machine: mib128}, // there is no enclave
		},
		negative: []given{
			{config: "NumTCS=4\n", machine: mib128},
		},
	}
}
