// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func preheatCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "a=1", found: judged.PageFaultStorm, machine: gib8},
		},
		near: []given{
			{manifest: "sgx.preheat_enclave = true", found: judged.PageFaultStorm, machine: gib8},
			{manifest: "a=1", found: judged.PageFaultStorm, machine: mib128},
			{manifest: "sgx.edmm_enable = true", found: judged.PageFaultStorm, machine: gib8},
		},
		negative: []given{
			{manifest: "a=1", found: "none", machine: gib8},
		},
	}
}
