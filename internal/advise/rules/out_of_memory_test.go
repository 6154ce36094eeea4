// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/teescope/teescope/internal/advise"
)

// outOfMemoryLog is what a library OS without memory writes (libos_malloc.c).
const outOfMemoryLog = "[P1:T1:app] error: Out-of-memory in library OS\n"

func outOfMemoryCases() ruleCases {
	return ruleCases{
		positive: []given{
			{log: outOfMemoryLog},
			{log: "[P1:T1:sh] error: failed allocating enough memory for checkpoint\n", manifest: "libos.entrypoint = \"/sh\""},
			{log: "[P1:T1:app] error: failed to allocate memory: Not enough memory (PAL_ERROR_NOMEM)\n", manifest: `sgx.enclave_size = "1G"`, machine: "memory_bytes 4294967296"},
			{log: outOfMemoryLog, manifest: `sgx.enclave_size = "128M"`, machine: mib128},
			{log: outOfMemoryLog, manifest: `sgx.enclave_size = "2G"`, machine: "memory_bytes 4294967296, sgx2 yes, kernel 6.1"},
			{log: outOfMemoryLog, manifest: "sgx.edmm_enable = true"},
		},
		near: []given{
			{log: "[P1:T1:app] debug: failed to allocate memory\n"},
			{log: "[P1:T1:app] error: out of ideas\nthe application is out of memory\n"},
		},
		negative: []given{
			{log: "[P1:T1:app] error: something else\n"},
		},
	}
}

// A larger enclave is not advised where the machine cannot have it, and is a decision where the EPC cannot.
func TestOutOfMemoryFitsTheMachine(t *testing.T) {
	const over = "memory_bytes 4294967296, sgx2 yes, kernel 6.1"
	for _, tt := range []struct {
		manifest, machine, key, value string
		choice                        bool
	}{
		{`sgx.enclave_size = "512M"`, "memory_bytes 4294967296", keySize, `"1024M"`, false},
		{"sgx.debug = true", "", keySize, `"512M"`, false},
		{`sgx.enclave_size = "128M"`, mib128, keySize, `"256M"`, true},
		{`sgx.enclave_size = "2G"`, "memory_bytes 4294967296", "", "", false},
		{`sgx.enclave_size = "2G"`, over, keyEDMM, "true", true},
		{`sgx.enclave_size = "16384G"`, "", "", "", false},
		{`sgx.enclave_size = "18446744073709551615"`, "", "", "", false}, // 2 to the power of 64 is not a size
	} {
		r := advise.Evaluate(given{log: outOfMemoryLog, manifest: tt.manifest, machine: tt.machine}.facts(t), []advise.Rule{outOfMemory()})
		a := r.Advice[0]
		key, value := "", ""
		if len(a.Changes) > 0 {
			key, value = a.Changes[0].Key, a.Changes[0].Value
		}
		if key != tt.key || value != tt.value || a.Choice != tt.choice {
			t.Errorf("%s on %q: %s = %s, a choice is %v", tt.manifest, tt.machine, key, value, a.Choice)
		}
	}
}
