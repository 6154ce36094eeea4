// SPDX-License-Identifier: Apache-2.0

package rules

func logLevelCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: `loader.log_level = "debug"`},
			{manifest: `loader.log_level = "warning"`},
			{manifest: `loader.log_level = "trace"`},
			{manifest: `loader.log_level = "all"`},
			{log: "[P1:T1:x] trace: ---- read\n"},
		},
		near: []given{
			{manifest: `loader.log_level = "error"`},
			{manifest: `loader.log_level = "{{ log_level }}"`, template: true},
			{log: "[P1:T1:x] error: x\n"},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}
