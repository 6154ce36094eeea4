// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

func TestNames(t *testing.T) {
	for c, want := range map[string][2]string{
		"calls": {"Calls", "calls"}, "call_ns": {"CallNS", "callNS"}, "tgid": {"TGID", "tgid"}, "llc_misses": {"LLCMisses", "llcMisses"},
		"pid_unknown": {"PIDUnknown", "pidUnknown"}, "role_sdk_ecall": {"RoleSDKECall", "roleSDKECall"}, "nsync": {"Nsync", "nsync"},
	} {
		if got := exported(c); got != want[0] {
			t.Errorf("%s is exported as %s, want %s", c, got, want[0])
		}
		if got := unexported(exported(c)); got != want[1] {
			t.Errorf("%s is %s within a package, want %s", c, got, want[1])
		}
	}
}
