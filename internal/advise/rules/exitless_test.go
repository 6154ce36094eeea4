// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func exitlessCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.max_threads = 8", stats: atBound, elapsed: busy, cpu: busy, machine: "cpus_online 0-1"},
			{manifest: "a=1", found: judged.Exitless},
			{manifest: "sgx.max_threads = 300", found: judged.Exitless}, // as many threads outside are refused
		},
		near: []given{
			{manifest: "sgx.insecure__rpc_thread_num = 8", stats: atBound, elapsed: busy, cpu: busy, machine: "cpus_online 0-1"},
			{manifest: "sgx.rpc_thread_num = 8", found: judged.Exitless},
			{manifest: "a=1", stats: atBound, elapsed: busy, cpu: busy, machine: "cpus_online 0"},
			{manifest: "a=1", stats: exitsPer10s(3_000_000), elapsed: busy, cpu: 3 * busy, machine: "cpus_online 0-7"}, // many threads
			{manifest: "a=1", stats: belowBound, elapsed: busy, cpu: busy, machine: "cpus_online 0-1"},
		},
		negative: []given{
			{manifest: "a=1", found: "none"},
		},
	}
}
