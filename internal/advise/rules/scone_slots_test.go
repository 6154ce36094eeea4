// SPDX-License-Identifier: Apache-2.0

package rules

func sconeSlotsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{config: "SCONE_SLOTS=64\n", scaling: "1 2 - 1\n64 9 - 5\n"},
		},
		near: []given{
			{config: "SCONE_SLOTS=65\n", scaling: "1 2 - 1\n64 9 - 5\n"},
			{config: "SCONE_QUEUES=4\n", scaling: "64 9 - 5\n"},
		},
		negative: []given{
			{config: "NumTCS=9\n", scaling: "64 9 - 5\n"},
		},
	}
}
