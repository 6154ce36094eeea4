// SPDX-License-Identifier: Apache-2.0

package rules

func sconeSimulationCases() ruleCases {
	return ruleCases{
		positive: []given{
			{config: "SCONE_MODE=sim\n"},
		},
		near: []given{
			{config: "SCONE_MODE=hw\n"},
		},
		negative: []given{
			{config: "NumTCS=9\n"},
		},
	}
}
