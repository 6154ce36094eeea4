// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func checkPointersCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "a=1", stats: atBound, elapsed: busy},
			{manifest: "libos.check_invalid_pointers = true", found: judged.OCALLBound},
		},
		near: []given{
			{manifest: "libos.check_invalid_pointers = false", found: judged.OCALLBound},
			{manifest: "libos.check_invalid_pointers = {{ x }}", template: true, found: judged.OCALLBound},
			{manifest: "a=1", stats: belowBound, elapsed: busy},
			{manifest: "sgx.insecure__rpc_thread_num = 8", found: judged.Exitless},
		},
		negative: []given{
			{manifest: "a=1", found: "none"},
		},
	}
}
