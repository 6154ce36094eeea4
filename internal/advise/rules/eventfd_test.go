// SPDX-License-Identifier: Apache-2.0

package rules

func eventfdCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sys.insecure__allow_eventfd = true"},
			{manifest: "sys.insecure__allow_eventfd = true", gramine: "1.7"},
		},
		near: []given{
			{manifest: "sys.insecure__allow_eventfd = false"},
			{manifest: "sys.insecure__allow_eventfd = true", gramine: "1.6.2"}, // it has no other
			{manifest: "sys.insecure__allow_eventfd = {{ x }}", template: true},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}
