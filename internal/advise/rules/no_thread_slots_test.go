// SPDX-License-Identifier: Apache-2.0

package rules

import "testing"

// More slots are advised only up to the number that Gramine accepts (host_main.c).
func TestMoreSlotsAreAccepted(t *testing.T) {
	for text, want := range map[string]string{
		"sgx.max_threads = 8": "16", "sgx.max_threads = 2048": "4096", "sgx.max_threads = 2049": "4096", "sgx.max_threads = 4096": "",
		"sgx.max_threads = 600\nsgx.insecure__rpc_thread_num = 4": "1024", "sgx.max_threads = 1024\nsgx.insecure__rpc_thread_num = 4": "",
	} {
		all, _ := fires(t, noThreadSlots(), given{manifest: text, log: "error: There are no available TCS pages left for a new thread!\n"})
		got := ""
		if len(all) == 1 && len(all[0].Changes) == 1 {
			got = all[0].Changes[0].Value
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func noThreadSlotsCases() ruleCases {
	return ruleCases{
		positive: []given{
			{log: "error: There are no available TCS pages left for a new thread!\n"},
			{manifest: "sgx.max_threads = 8", log: "error: There are no available TCS pages left for a new thread. Please try to increase sgx.max_threads in the manifest. The current value is 8\n"},
		},
		near: []given{
			{log: "error: There are available TCS pages left for a new thread!\n"},
		},
		negative: []given{
			{log: "error: something else\n"},
		},
	}
}
