// SPDX-License-Identifier: Apache-2.0

package boundarytest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// Damaged calls read with a program whose headers are damaged in many ways: truncated, or with all ones or zeros
// in one field. A reader must return soon, with or without an error.
func Damaged(t *testing.T, read func(t *testing.T, data []byte)) {
	t.Helper()
	path := Build(t, filepath.Join(t.TempDir(), "loader"), Source("loader.c"))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(good) / 97 {
		read(t, good[:i*97])
	}
	var h elf.Header64
	if err := binary.Read(bytes.NewReader(good), binary.LittleEndian, &h); err != nil {
		t.Fatal(err)
	}
	for _, table := range []struct{ at, size, n uint64 }{{0, 64, 1}, {h.Phoff, 56, uint64(h.Phnum)}, {h.Shoff, 64, uint64(h.Shnum)}} {
		for at := table.at; at < table.at+table.size*table.n; at += 4 {
			for _, value := range []uint32{0, 1, 0x7fffffff, 0xffffffff} {
				bad := bytes.Clone(good)
				binary.LittleEndian.PutUint32(bad[at:], value)
				read(t, bad)
			}
		}
	}
}

// Small returns a program with one segment, two named functions, and Gramine's three counters.
func Small() []byte {
	var out bytes.Buffer
	put := func(v any) {
		if err := binary.Write(&out, binary.LittleEndian, v); err != nil {
			panic(err) // a buffer accepts all writes
		}
	}
	const code, symbols, strings, sections = 120, 168, 240, 264
	h := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Phoff: 64, Phentsize: 56, Phnum: 1, Shoff: sections, Shentsize: 64, Shnum: 2}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	put(h)
	put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Filesz: sections, Memsz: sections})
	for i := range byte(3) {
		put(append([]byte{0x65, 0xf0, 0x48, 0xff, 0x04, 0x25}, 0x28+8*i, 0, 0, 0))
	}
	put(make([]byte, symbols-out.Len()))
	for i := range uint64(3) {
		put(elf.Sym64{Name: uint32(10 * i), Info: uint8(elf.STT_FUNC), Shndx: 1, Value: code + 10*i})
	}
	put([]byte("sgx_ecall\x00sgx_ocall\x00_x\x00\x00"))
	put(elf.Section64{Type: uint32(elf.SHT_SYMTAB), Off: symbols, Size: strings - symbols, Link: 1})
	put(elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: strings, Size: 24})
	return out.Bytes()
}
