// SPDX-License-Identifier: Apache-2.0

package rules

func helperProcessesCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: python, stats: started, procs: 2},
			{manifest: python, log: "[P1:T1:python3] error: x\n[P2:T3:python3] error: x\n"},
		},
		near: []given{
			{manifest: python, stats: started},
			{manifest: python, log: "[P1:T1:python3] error: x\n[P1:T2:python3] error: x\n"},
			{manifest: "libos.entrypoint = \"/nginx\"", stats: started, procs: 5},
			{manifest: python + "sys.disallow_subprocesses = false", stats: started, procs: 2}, // decided
		},
		negative: []given{
			{manifest: "a=1", stats: started},
		},
	}
}
