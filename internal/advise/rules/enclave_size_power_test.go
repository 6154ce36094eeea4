// SPDX-License-Identifier: Apache-2.0

package rules

import "testing"

// No size is advised that an enclave cannot have.
func TestEnclaveSizes(t *testing.T) {
	for size, want := range map[string]string{"3G": `"4096M"`, "1025K": `"2M"`, "1000K": "", "0": "", "15360G": `"16777216M"`, "17408G": "", "18446744073709551615": ""} {
		all, _ := fires(t, enclaveSizePower(), given{manifest: "sgx.enclave_size = \"" + size + "\""})
		got := ""
		if len(all) == 1 && len(all[0].Changes) == 1 {
			got = all[0].Changes[0].Value
		}
		if len(all) != 1 || got != want {
			t.Errorf("%s: %q, want %q", size, got, want)
		}
	}
}

func enclaveSizePowerCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: `sgx.enclave_size = "3G"`},
			{manifest: `sgx.enclave_size = "0"`},
		},
		near: []given{
			{manifest: `sgx.enclave_size = "4G"`},
			{manifest: `sgx.enclave_size = "{{ x }}"`, template: true},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}
