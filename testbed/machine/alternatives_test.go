// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/binary"
	"slices"
	"testing"
)

func entry(size int, site int32, feature uint16, lengths ...byte) []byte {
	e := make([]byte, size)
	binary.LittleEndian.PutUint32(e, uint32(site))
	binary.LittleEndian.PutUint16(e[8:], feature)
	copy(e[size-2:], lengths)
	return e
}

func TestSites(t *testing.T) {
	const table, text = 0x5000, 0x1000
	for _, size := range []int{12, 14} {
		entries := slices.Concat(
			entry(size, -0x1000, 361, 5, 0),
			entry(size, -0x2000, 361, 5, 5),       // replaced by something: not a question
			entry(size, -0x2000, 361|1<<15, 5, 0), // the opposite question, up to 6.2
			entry(size, -0x2000, 362, 5, 0),       // another feature
			entry(size, 0x100-0x3000, 361, 5, 0)[:size],
		)
		got, err := sites(entries, table, text, 361, size)
		want := []uint64{0x3000, 0x1100 + uint64(4*size)}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("entries of %d bytes: %x (%v), want %x", size, got, err, want)
		}
		if _, err := sites(entries[1:], table, text, 361, size); err == nil {
			t.Errorf("a table of odd size was read")
		}
		if got, err := sites(entries, table, text, 7, size); err == nil {
			t.Errorf("a feature that no entry names is at %x", got)
		}
	}
}
