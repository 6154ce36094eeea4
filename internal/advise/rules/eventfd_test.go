// SPDX-License-Identifier: Apache-2.0

package rules

func eventfdCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sys.insecure__allow_eventfd = true"},
		},
		near: []given{
			{manifest: "sys.insecure__allow_eventfd = false"},
			{manifest: "sys.insecure__allow_eventfd = {{ x }}", template: true},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}
