// SPDX-License-Identifier: Apache-2.0

package rules

import judged "github.com/teescope/teescope/internal/analysis/rules"

func numaCases() ruleCases {
	return ruleCases{
		positive: []given{
			{machine: "numa_nodes 0-1"},
			{found: judged.NUMARemoteEPC},
		},
		near: []given{
			{machine: "numa_nodes 0-1", live: on(8, 4, 0, 1, false)},
		},
		negative: []given{
			{machine: "numa_nodes 0"},
			{found: "none"},
		},
	}
}
