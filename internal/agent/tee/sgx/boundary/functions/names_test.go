// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"maps"
	"testing"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/executable/executabletest"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
)

// tableOfApp returns the linked address of the application's OCALL table.
func tableOfApp(t *testing.T, path string) uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name == "ocall_table_app" {
			return s.Value
		}
	}
	t.Fatal("the application has no OCALL table")
	return 0
}

func TestECALLsHaveTheNamesOfTheirStubs(t *testing.T) {
	both := map[uint32]string{0: "app_ecall_even", 1: "app_ecall_odd"}
	for name, tt := range map[string]struct {
		flags []string
		want  map[uint32]string
	}{
		"as built":                {nil, both},
		"not optimised":           {[]string{"-O0"}, both},
		"for size":                {[]string{"-Os"}, both},
		"at a fixed address":      {[]string{"-no-pie"}, both},
		"for branch tracking":     {[]string{"-fcf-protection=full"}, both},
		"with frame pointers":     {[]string{"-fno-omit-frame-pointer"}, both},
		"with protected stacks":   {[]string{"-fstack-protector-all"}, both},
		"no two stubs may claim":  {[]string{"-Dapp_ecall_odd=app_ecall_even_too", "-DSAME_NUMBER"}, map[uint32]string{0: ""}},
		"static functions do not": {[]string{"-DSTATIC_STUBS", "-Wno-unused-function"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := boundarytest.SDKApp(t, "names", tt.flags...)
			_, p := executabletest.Open(t, path)
			names, err := ecallNames(p, tableOfApp(t, path))
			if err != nil || !maps.Equal(names, tt.want) {
				t.Errorf("%v, want %v (%v)", names, tt.want, err)
			}
			if names, err := ecallNames(p, tableOfApp(t, path)+8); err != nil || len(names) != 0 {
				t.Errorf("with a table that no function passes: %v, %v", names, err)
			}
		})
	}
}

// A reference may cross the boundary of two chunks.
func TestReferencesAreFoundAnywhere(t *testing.T) {
	const header, size, base, table = 4096, 2*executable.Chunk + 100, 0x400000, 0x700000
	var image bytes.Buffer
	h := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Phoff: 64, Phentsize: 56, Phnum: 1}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	segment := elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: header, Vaddr: base, Filesz: size}
	if err := errors.Join(binary.Write(&image, binary.LittleEndian, h), binary.Write(&image, binary.LittleEndian, segment)); err != nil {
		t.Fatal(err)
	}
	for at := executable.Chunk - 40; at < executable.Chunk+10; at++ {
		code := make([]byte, size)
		next := uint64(base + at + 7)
		disp := uint32(table - next)
		copy(code[at:], append(leaRDX, byte(disp), byte(disp>>8), byte(disp>>16), byte(disp>>24)))
		data := append(append(image.Bytes(), make([]byte, header-image.Len())...), code...)
		p, err := executable.Read(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		found, err := references(p, table)
		if err != nil || len(found) == 0 || found[0] != base+uint64(at) {
			t.Fatalf("at %d: found %x, %v", at, found, err)
		}
	}
}
