// SPDX-License-Identifier: Apache-2.0

package rules

func sconeSpinsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{config: "SCONE_SSPINS=10000\n"},
		},
		near: []given{
			{config: "SCONE_SSPINS=9999\n"},
			{config: "SCONE_ESPINS=1000000\n"}, // not described
		},
		negative: []given{
			{config: "SCONE_QUEUES=4\n"},
			{config: "NumTCS=9\n"},
		},
	}
}
