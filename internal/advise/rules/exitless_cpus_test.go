// SPDX-License-Identifier: Apache-2.0

package rules

func exitlessCpusCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.insecure__rpc_thread_num = 4", machine: "cpus_online 0-3"},
		},
		near: []given{
			{manifest: "sgx.insecure__rpc_thread_num = 3", machine: "cpus_online 0-3"},
		},
		negative: []given{
			{manifest: "a=1", machine: "cpus_online 0"},
		},
	}
}
