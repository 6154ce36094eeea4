// SPDX-License-Identifier: Apache-2.0

package rules

func exitlessThreadsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.insecure__rpc_thread_num = 4\nsgx.max_threads = 8"},
			{manifest: "sgx.insecure__rpc_thread_num = 8"},
		},
		near: []given{
			{manifest: "sgx.insecure__rpc_thread_num = 8\nsgx.max_threads = 8"},
			{manifest: "sgx.insecure__rpc_thread_num = 4"},
			{manifest: "sgx.insecure__rpc_thread_num = 8\nsgx.max_threads = 1\nsgx.edmm_enable = true"},
		},
		negative: []given{
			{manifest: "sgx.max_threads = 8"},
		},
	}
}
