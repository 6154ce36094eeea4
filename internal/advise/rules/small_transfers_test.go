// SPDX-License-Identifier: Apache-2.0

package rules

func smallTransfersCases() ruleCases {
	return ruleCases{
		positive: []given{
			{trace: "10000 TCP:[1.2.3.4:5->6.7.8.9:10] 4095"},
		},
		near: []given{
			{trace: "10000 TCP:[1.2.3.4:5->6.7.8.9:10] 4096"},
			{trace: "9999 TCP:[1.2.3.4:5->6.7.8.9:10] 100"},
		},
		negative: []given{
			{trace: "10000 /srv/data 65536"},
		},
	}
}
