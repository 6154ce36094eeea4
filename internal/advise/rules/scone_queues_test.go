// SPDX-License-Identifier: Apache-2.0

package rules

import "strings"

func sconeQueuesCases() ruleCases {
	return ruleCases{
		positive: []given{
			{config: "SCONE_QUEUES=9\n", machine: "cpus_online 0-7"},
			{config: "Q 9\n", machine: "cpus_online 0-7"},
			{config: "Q 1\n" + strings.Repeat("s -1 0 0\n", 9), machine: "cpus_online 0-7"},
		},
		near: []given{
			{config: "SCONE_QUEUES=8\n", machine: "cpus_online 0-7"},
		},
		negative: []given{
			{config: "NumTCS=9\n", machine: "cpus_online 0-7"},
		},
	}
}
