// SPDX-License-Identifier: Apache-2.0

package rules

func rawSyscallsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{log: "Emulating a raw syscall instruction. This degrades performance, consider patching your application to use Gramine syscall API.\n"},
			{log: "Emulating a raw system/supervisor call. This degrades performance\n"},
		},
		near: []given{
			{log: "error: x\nEmulating a printer\n"},
		},
		negative: []given{
			{log: "[P1:T1:x] error: x\n"},
		},
	}
}
