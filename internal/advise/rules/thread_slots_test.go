// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func threadSlotsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.max_threads = 8", found: judged.ThreadsOverCapacity},
			{manifest: "sgx.thread_num = 8", found: judged.ThreadsOverCapacity},
			{config: "NumTCS=8\n", found: judged.ThreadsOverCapacity},
			{manifest: "sgx.max_threads = 10", live: runs(8, 1, 0)},
			{manifest: fourOutside, live: runs(12, 1, 0)},
			{manifest: fourOutside, live: direct()},
		},
		near: []given{
			{manifest: "sgx.max_threads = 10", live: runs(7, 1, 0)},
			{found: judged.ThreadChurn},
			{manifest: fourOutside, live: runs(11, 1, 0)},
			{manifest: fourOutside + "sgx.edmm_enable = true", live: runs(20, 1, 0)},
		},
		negative: []given{
			{manifest: "a=1", found: "none"},
		},
	}
}
