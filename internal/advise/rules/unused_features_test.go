// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func unusedFeaturesCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "a=1", stats: manyCalls, elapsed: busy},
			{manifest: "sgx.cpu_features.avx512 = \"unspecified\"\nsgx.cpu_features.amx = \"disabled\"", found: judged.OCALLBound},
		},
		near: []given{
			{manifest: "a=1", stats: fewCalls, elapsed: busy},
			{manifest: "sgx.require_avx512 = true\nsgx.require_amx = true", stats: manyCalls, elapsed: busy},
			{manifest: "sgx.require_avx = false", stats: manyCalls, elapsed: busy},
			{manifest: "sgx.cpu_features.avx512 = \"required\"\nsgx.cpu_features.amx = \"disabled\"", found: judged.OCALLBound},
		},
		negative: []given{
			{manifest: "a=1", found: "none"},
		},
	}
}
