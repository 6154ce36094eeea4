// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
)

// BuildID returns the build ID in the notes of an ELF file, in hexadecimal digits, or "" if they have none. The file
// /sys/kernel/notes consists of notes in the byte order of the machine.
func BuildID(notes []byte, order binary.ByteOrder) string {
	const header, ofBuildID, longest = 12, 3, 64
	aligned := func(n uint32) uint64 { return (uint64(n) + 3) &^ 3 }
	for len(notes) >= header {
		name, size, kind := order.Uint32(notes), order.Uint32(notes[4:]), order.Uint32(notes[8:])
		body := header + aligned(name)
		end := body + aligned(size)
		if end > uint64(len(notes)) {
			return ""
		}
		if kind == ofBuildID && size > 0 && size <= longest && bytes.Equal(notes[header:header+name], []byte("GNU\x00")) {
			return hex.EncodeToString(notes[body : body+uint64(size)])
		}
		notes = notes[end:]
	}
	return ""
}
