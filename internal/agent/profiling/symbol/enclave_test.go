// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"fmt"
	"slices"
	"testing"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

// The parts of an enclave have different permissions, so they are several mappings. Two enclaves have a gap between them.
func TestAnEnclaveIsAllItsMappings(t *testing.T) {
	var all []span
	for _, m := range []struct {
		start, end uint64
		path       string
	}{
		{0x1000, 0x2000, "/usr/bin/server"},
		{0x10000, 0x11000, "/dev/sgx_enclave"},
		{0x11000, 0x18000, "/dev/sgx_enclave (deleted)"},
		{0x18000, 0x19000, "/tmp/dev/sgx_enclave"},
		{0x20000, 0x28000, "/dev/sgx/enclave"},
		{0x30000, 0x31000, "/dev/sgx_provision"},
	} {
		all = addEnclave(all, hostfs.Mapping{Start: m.start, End: m.end, Path: []byte(m.path)})
	}
	if want := []span{{0x10000, 0x18000}, {0x20000, 0x28000}}; !slices.Equal(all, want) {
		t.Errorf("enclaves at %x, want %x", all, want)
	}
	table, p := &Table{}, &Process{reason: gone, mapped: mapped{enclaves: all}}
	for address, want := range map[uint64]uint64{0xffff: 0, 0x10000: 0x10000, 0x17fff: 0x10000, 0x18000: 0, 0x21000: 0x20000} {
		if got := table.Enclave(p, address); got != want {
			t.Errorf("%#x is in the enclave at %#x, want %#x", address, got, want)
		}
	}
	for i := range uint64(2 * maxEnclaves) {
		all = addEnclave(all, hostfs.Mapping{Start: i << 20, End: i<<20 + 1, Path: fmt.Append(nil, "/dev/sgx_enclave")})
	}
	if len(all) != maxEnclaves {
		t.Errorf("%d enclaves are kept, want %d", len(all), maxEnclaves)
	}
}
