// SPDX-License-Identifier: Apache-2.0

package rules

func debugBuildCases() ruleCases {
	return ruleCases{
		positive: []given{
			{log: "(host_thread.c:306:pal_thread_init) error: There are no available TCS pages left\n"},
			{log: "[P1:T2:redis-server] (libos_init.c:440:libos_init) debug: LibOS initialized\n"},
		},
		near: []given{
			{log: "error: x\napp (main.c:12) failed\n"},
			{log: "error: x\nat (host_thread.c:306:pal_thread_init) the application said\n"},
		},
		negative: []given{
			{log: "[P1:T2:redis-server] error: x\n"},
		},
	}
}
