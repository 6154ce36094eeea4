// SPDX-License-Identifier: Apache-2.0

package rules

func configDebugCases() ruleCases {
	return ruleCases{
		positive: []given{
			{config: `{"heapSize": 512, "debug": true}`},
			{config: `{"resource_limits": {}, "metadata": {"debuggable": true}}`},
			{config: "Debug=1\nNumTCS=4\n"},
		},
		near: []given{
			{config: `{"heapSize": 512, "debug": false}`},
		},
		negative: []given{
			{config: "NumTCS=4\n"},
		},
	}
}
