// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func exitlessOffCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.insecure__rpc_thread_num = 8", found: judged.Exitless},
		},
		near: []given{
			{manifest: "sgx.insecure__rpc_thread_num = 0", found: judged.Exitless},
			{manifest: "sgx.insecure__rpc_thread_num = 8", found: "none"},
		},
		negative: []given{
			{manifest: "a=1", found: "none"},
		},
	}
}
