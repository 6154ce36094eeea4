// SPDX-License-Identifier: Apache-2.0

package rules

func exitlessProductionCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.insecure__rpc_thread_num = 8"},
			{manifest: "sgx.insecure__rpc_thread_num = 8\nsgx.debug = false"},
		},
		near: []given{
			{manifest: "sgx.insecure__rpc_thread_num = 8\nsgx.debug = true"},
			{manifest: "sgx.insecure__rpc_thread_num = 8\nsgx.debug = {{ d }}", template: true},
		},
		negative: []given{
			{manifest: "sgx.debug = false"},
		},
	}
}
