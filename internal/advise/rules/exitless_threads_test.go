// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func exitlessThreadsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.debug = true\nsgx.insecure__rpc_thread_num = 4\nsgx.max_threads = 8"},
			{manifest: "sgx.debug = true\nsgx.insecure__rpc_thread_num = 8", machine: "cpus_online 0-8"},
			{manifest: "sgx.debug = true\nsgx.insecure__rpc_thread_num = 4\nsgx.max_threads = 300"},
		},
		near: []given{
			{manifest: "sgx.debug = true\nsgx.insecure__rpc_thread_num = 8\nsgx.max_threads = 8"},
			{manifest: "sgx.debug = true\nsgx.insecure__rpc_thread_num = 4"},
			{manifest: "sgx.debug = true\nsgx.insecure__rpc_thread_num = 256\nsgx.max_threads = 300"}, // more are refused
			{manifest: "sgx.debug = true\nsgx.insecure__rpc_thread_num = 8\nsgx.max_threads = 1\nsgx.edmm_enable = true"},
			// Another rule advises to turn Exitless off, or would then.
			{manifest: "sgx.insecure__rpc_thread_num = 4\nsgx.max_threads = 8"},
			{manifest: "sgx.debug = true\nsgx.insecure__rpc_thread_num = 4\nsgx.max_threads = 8", machine: "cpus_online 0-1"},
			{manifest: "sgx.debug = true\nsgx.insecure__rpc_thread_num = 4\nsgx.max_threads = 8", machine: "cpus_online 0-7"},
			{manifest: "sgx.debug = true\nsgx.insecure__rpc_thread_num = 4\nsgx.max_threads = 8", found: judged.Exitless},
		},
		negative: []given{
			{manifest: "sgx.max_threads = 8"},
		},
	}
}
