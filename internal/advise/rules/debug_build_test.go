// SPDX-License-Identifier: Apache-2.0

package rules

func debugBuildCases() ruleCases {
	return ruleCases{
		positive: []given{
			{log: "error: [INFO] Profile data written to sgx-perf-7-1718000000.data (8400 bytes)\n"},
			{log: "assert failed ../libos/src/libos_init.c:440 ret == 0\n[P1:T1:app] error: x\n"},
			{log: "----- SGX enclave loading time =    9000000 microseconds -----\n----- Total SGX stats for process 7 -----\n"}, // 1.8 and later
		},
		near: []given{
			// A release build at the level debug. Gramine prints the place from 1.4 on.
			{log: "(host_main.c:977:load_enclave) debug: Gramine parsed TOML manifest file successfully\n(libos_init.c:440:libos_init) [P1:T1:redis-server] debug: LibOS initialized\n"},
			{log: "----- SGX stats for thread 7 -----\n----- Total SGX stats for process 7 -----\n"}, // to 1.7, also of release builds
			{log: "error: x\napp: an assert failed in main.c:12\n"},
		},
		negative: []given{
			{log: "[P1:T2:redis-server] error: x\n"},
		},
	}
}
