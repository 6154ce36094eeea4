// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sites.c has one function for each kind of first instruction; its name says what is to come of it.
func TestPlacesOfRealCode(t *testing.T) {
	path := build(t, filepath.Join(t.TempDir(), "sites"), "testdata/sites.c")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := readProgram(f)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = p.functions(func(fn function) {
		kind, _, _ := strings.Cut(fn.name, "_")
		where, err := p.place(fn.address)
		switch kind {
		case "refused":
			if err == nil {
				t.Errorf("%s takes a probe at %#x", fn.name, where.offset)
			}
		case "cheap", "dear":
			if err != nil || where.stepped != (kind == "dear") {
				t.Errorf("%s: stepped %v, %v", fn.name, where.stepped, err)
			}
		default:
			return
		}
		seen++
	})
	if err != nil || seen < 20 {
		t.Errorf("%d functions were looked at: %v", seen, err)
	}
}

// What is unsafe by our rules must include all that the kernel refuses, and what is safe must work.
func TestKernelTakesWhatIsNotRefused(t *testing.T) {
	b := start(t, On, 0)
	dir := filepath.Join(t.TempDir(), "gramine/sgx")
	p := run(t, build(t, filepath.Join(dir, "loader"), "testdata/sites.c", "-DAS_LOADER"))
	p.do(t, "0")
	look(t, b)
	s := scrape(t, b)
	before := numbers(t, p.do(t, "3"))[0]
	after := scrape(t, b)
	probed := 0.0
	for name, n := range after {
		if !strings.HasPrefix(name, "teescope_ocalls_total{ocall=") {
			continue
		}
		if strings.Contains(name, "refused") {
			t.Errorf("%s was probed", name)
		}
		if n-s[name] != 3 {
			t.Errorf("%s grew by %v, want 3", name, n-s[name])
		}
		probed++
	}
	if probed != before {
		t.Errorf("%v functions were probed, the program has %v that can be", probed, before)
	}
	found := false
	for name := range after {
		found = found || strings.HasPrefix(name, "teescope_transition_probes_info{file=loader,reason=") && strings.Contains(name, "takes no probe")
	}
	if !found {
		t.Error("nothing says that functions were refused")
	}
}

// hostile reads a program that anybody may have written, and must end soon with an error or without.
func hostile(t *testing.T, data []byte) {
	t.Helper()
	p, err := readProgram(bytes.NewReader(data))
	if err != nil {
		return
	}
	for _, r := range []*runtime{sdk, openEnclave, occlum, gramine} {
		if f, _ := r.find(p); f != nil {
			for address := range f.spots {
				_, _ = p.place(address)
			}
		}
	}
	for _, address := range []uint64{0, 0x1000, 0x4000, math.MaxUint64 - 8} {
		_, _ = p.ocallTable(address)
		_, _ = p.ecallNames(address)
		_, _ = p.place(address)
	}
}

func TestHostileFiles(t *testing.T) {
	path := build(t, filepath.Join(t.TempDir(), "loader"), "testdata/loader.c")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(good) / 97 {
		hostile(t, good[:i*97])
	}
	var h elf.Header64
	if err := binary.Read(bytes.NewReader(good), binary.LittleEndian, &h); err != nil {
		t.Fatal(err)
	}
	// All-ones and zero in each field of each header.
	for _, table := range []struct{ at, size, n uint64 }{{0, 64, 1}, {h.Phoff, 56, uint64(h.Phnum)}, {h.Shoff, 64, uint64(h.Shnum)}} {
		for at := table.at; at < table.at+table.size*table.n; at += 4 {
			for _, value := range []uint32{0, 1, 0x7fffffff, 0xffffffff} {
				bad := bytes.Clone(good)
				binary.LittleEndian.PutUint32(bad[at:], value)
				hostile(t, bad)
			}
		}
	}
	if _, err := readProgram(strings.NewReader("#!/bin/sh")); !errors.Is(err, errNotELF) {
		t.Errorf("a script: %v", err)
	}
}

// small is a program of one segment, two functions with their names, and Gramine's three counters.
func small() []byte {
	var out bytes.Buffer
	put := func(v any) {
		if err := binary.Write(&out, binary.LittleEndian, v); err != nil {
			panic(err) // a buffer takes all
		}
	}
	const code, symbols, strings, sections = 120, 168, 240, 264
	h := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Phoff: 64, Phentsize: 56, Phnum: 1, Shoff: sections, Shentsize: 64, Shnum: 2}
	copy(h.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	put(h)
	put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Filesz: sections, Memsz: sections})
	for i := range byte(3) {
		put(append(bytes.Clone(lockIncGS), 0x28+8*i, 0, 0, 0))
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

func TestSmallProgramIsRead(t *testing.T) {
	p, err := readProgram(bytes.NewReader(small()))
	if err != nil {
		t.Fatal(err)
	}
	f, err := gramine.find(p)
	if err != nil || f.start != 120 || f.layout == nil || f.layout.Offsets != [counters]uint32{0x28, 0x30, 0x38, 0x40, 0x48} {
		t.Errorf("found %+v, %v", f, err)
	}
}

// The dearest file that is believed: names that are never where the last one was.
func TestReadingSymbolsIsBounded(t *testing.T) {
	const table = 120
	data := make([]byte, table+maxSymbols*elf.Sym64Size+1<<20)
	for i := range uint32(maxSymbols) {
		at := data[table+elf.Sym64Size*i:]
		binary.LittleEndian.PutUint32(at, i%2*(1<<19)+i%1000)
		at[4], at[6] = uint8(elf.STT_FUNC), 1
	}
	p := &program{file: bytes.NewReader(data), sections: []elf.Section64{
		{Type: uint32(elf.SHT_SYMTAB), Off: table, Size: maxSymbols * elf.Sym64Size, Link: 1},
		{Type: uint32(elf.SHT_STRTAB), Off: table + maxSymbols*elf.Sym64Size, Size: 1 << 20},
	}}
	n := 0
	if err := p.functions(func(function) { n++ }); err != nil || n != maxSymbols {
		t.Errorf("%d functions, %v", n, err)
	}
	p.sections[0].Size += elf.Sym64Size
	if err := p.functions(func(function) {}); err == nil {
		t.Error("more symbols than the bound are read")
	}
}

func FuzzProgram(f *testing.F) {
	f.Add(small())
	f.Fuzz(func(t *testing.T, data []byte) { hostile(t, data) })
}

// Stepping costs something, and what was measured is what a program pays.
func TestSteppingIsMeasured(t *testing.T) {
	b := start(t, On, 0)
	cost, err := b.kernel.measureStepping()
	if err != nil || cost < 1 {
		t.Errorf("stepping costs %d: %v", cost, err)
	}
	if b.kernel.files[0].Cost != 0 {
		t.Error("measuring is counted as somebody's cost")
	}
	t.Logf("stepping costs %d cheap hits", cost)
}
