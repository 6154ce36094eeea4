// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
)

func mallocArenasCases() ruleCases {
	return ruleCases{
		positive: []given{
			{manifest: "sgx.max_threads = 8"}, // 5 x 64 MiB of 256 MiB
			{manifest: "sgx.max_threads = 12\nsgx.enclave_size = \"1G\""},
		},
		near: []given{
			{manifest: "sgx.max_threads = 11\nsgx.enclave_size = \"1G\""}, // 512 MiB
			{manifest: "sgx.max_threads = 64\nsgx.enclave_size = \"1G\"\nloader.env.MALLOC_ARENA_MAX = \"1\""},
			{manifest: "sgx.max_threads = 64\nloader.env = { MALLOC_ARENA_MAX = \"1\" }"},
			{manifest: "sgx.max_threads = 64\nloader.env.MALLOC_ARENA_MAX = { passthrough = true }"},
			{manifest: "sgx.max_threads = 64\nsgx.edmm_enable = true"},
		},
		negative: []given{
			{manifest: "a=1"},
		},
	}
}

// An enclave that the EPC cannot hold is no way out: enclave-over-epc would then advise a smaller one.
func TestMallocArenasFitIntoTheEPC(t *testing.T) {
	for machine, larger := range map[string]bool{mib128: false, gib8: true, "": true} {
		all, _ := fires(t, mallocArenas(), given{manifest: "sgx.max_threads = 8", machine: machine})
		if len(all) != 1 || strings.Contains(strings.Join(all[0].Do, "\n"), "enlarge") != larger {
			t.Errorf("%q: %+v", machine, all)
		}
	}
}
