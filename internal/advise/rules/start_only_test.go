// SPDX-License-Identifier: Apache-2.0

package rules

func startOnlyCases() ruleCases {
	return ruleCases{
		positive: []given{
			{stats: helloWorld},
		},
		near: []given{
			{stats: [5]uint64{250, 201, 1, 1, 0}},
		},
		negative: []given{
			{stats: manyCalls},
		},
	}
}
