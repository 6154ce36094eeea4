// SPDX-License-Identifier: Apache-2.0

package rules

func openFilesCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "a=1", live: runs(3, 720, 0)},
			{manifest: "sys.fds.limit = 1000", live: runs(3, 800, 0)},
		},
		near: []given{
			{manifest: "a=1", live: runs(3, 719, 0)},
			{manifest: "sys.fds.limit = 1000", live: runs(3, 799, 0)},
			{manifest: "sys.fds.limit = {{ n }}", template: true, live: runs(3, 9000, 0)},
		},
		negative: []given{
			{manifest: "a=1", live: runs(3, 3, 0)},
		},
	}
}
