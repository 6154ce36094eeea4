// SPDX-License-Identifier: Apache-2.0

package executable

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/boundarytest"
)

// sites.c has one function for each kind of first instruction. Its name is the expected result.
func TestProbePointsOfRealCode(t *testing.T) {
	path := boundarytest.Build(t, filepath.Join(t.TempDir(), "sites"), boundarytest.Source("sites.c"))
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = p.Functions(func(fn Function) {
		kind, _, _ := strings.Cut(fn.Name, "_")
		where, err := p.ProbePoint(fn.Address)
		switch kind {
		case "refused":
			if err == nil {
				t.Errorf("%s takes a probe at %#x", fn.Name, where.Offset)
			}
		case "cheap", "slow":
			if err != nil || where.Stepped != (kind == "slow") {
				t.Errorf("%s: stepped %v, %v", fn.Name, where.Stepped, err)
			}
		default:
			return
		}
		seen++
	})
	if err != nil || seen < 20 {
		t.Errorf("%d functions were inspected: %v", seen, err)
	}
}

// A file chooses how many symbols it has, and where their names are: each far from the previous one is the most expensive.
func TestReadingSymbolsIsBounded(t *testing.T) {
	const table = 120
	data := make([]byte, table+maxSymbols*elf.Sym64Size+1<<20)
	scatter := func(every uint32) {
		for i := range uint32(maxSymbols) {
			at := data[table+elf.Sym64Size*i:]
			far := uint32(0)
			if i%every == 0 {
				far = 1 << 19
			}
			binary.LittleEndian.PutUint32(at, far+i%1000)
			at[4], at[6] = uint8(elf.STT_FUNC), 1
		}
	}
	file := &countingReader{ReaderAt: bytes.NewReader(data)}
	p := &Program{file: file, sections: []elf.Section64{
		{Type: uint32(elf.SHT_SYMTAB), Off: table, Size: maxSymbols * elf.Sym64Size, Link: 1},
		{Type: uint32(elf.SHT_STRTAB), Off: table + maxSymbols*elf.Sym64Size, Size: 1 << 20},
	}}
	scatter(2)
	if err := p.Functions(func(Function) {}); err == nil || file.bytes > maxSymbols*elf.Sym64Size+maxWindows*windowSize {
		t.Errorf("%d bytes are read of names that are far apart, %v", file.bytes, err)
	}
	scatter(32)
	n := 0
	if err := p.Functions(func(Function) { n++ }); err != nil || n != maxSymbols {
		t.Errorf("%d functions, %v", n, err)
	}
	p.sections[0].Size += elf.Sym64Size
	if err := p.Functions(func(Function) {}); err == nil {
		t.Error("more symbols than the bound are read")
	}
	const few = 1 << 10 // a file may name a table thousands of times
	p.sections[0].Size = maxSymbols / few * elf.Sym64Size
	for range 3 * few {
		p.sections = append(p.sections, p.sections[0])
	}
	n = 0
	if err := p.Functions(func(Function) { n++ }); err == nil || n > 2*maxSymbols {
		t.Errorf("%d functions of overlapping tables, %v", n, err)
	}
}

// countingReader counts the bytes that are read.
type countingReader struct {
	io.ReaderAt
	bytes int
}

func (r *countingReader) ReadAt(into []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(into, at)
	r.bytes += n
	return n, err
}

// A file may name a section of relocations thousands of times, so that gigabytes would be read.
func TestOverlappingRelocationsAreFew(t *testing.T) {
	const entry, few, offset, address = 24, 1 << 10, 64, 0x1000
	file := &countingReader{ReaderAt: bytes.NewReader(make([]byte, maxSymbols/few*entry+offset))}
	p := &Program{
		file: file, segments: []elf.Prog64{{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R), Off: offset, Vaddr: address, Filesz: 64}},
	}
	for range 2 * few {
		p.sections = append(p.sections, elf.Section64{Type: withAddends, Off: offset, Size: maxSymbols / few * entry})
	}
	if _, err := p.Words(address, 1); err != nil || file.bytes < 2*maxSymbols*entry {
		t.Errorf("%d bytes of relocations, %v", file.bytes, err)
	}
	for range 2 * few {
		p.sections = append(p.sections, p.sections[0])
	}
	file.bytes = 0
	if _, err := p.Words(address, 1); err == nil || file.bytes > 2*maxSymbols*entry+entry {
		t.Errorf("%d bytes of overlapping relocations, %v", file.bytes, err)
	}
}

func TestScriptIsNotELF(t *testing.T) {
	if _, err := Read(strings.NewReader("#!/bin/sh")); !errors.Is(err, ErrNotELF) {
		t.Errorf("a script: %v", err)
	}
}

// Names are read whole wherever they are in the window, up to a limit.
func TestLongNames(t *testing.T) {
	var table bytes.Buffer
	var want []string
	for n := 100; n < 3000; n += 97 {
		want = append(want, strings.Repeat("n", n))
		table.WriteString(want[len(want)-1] + "\x00")
	}
	for _, backwards := range []bool{false, true} {
		names, at := &names{file: bytes.NewReader(table.Bytes()), windows: 100}, 0
		if backwards {
			at = table.Len()
		}
		for i := range want {
			name := want[i]
			if backwards {
				name = want[len(want)-1-i]
				at -= len(name) + 1
			}
			if got := names.at(uint32(at)); got != name[:min(len(name), longestName)] {
				t.Fatalf("a name of %d bytes has %d", len(name), len(got))
			}
			if !backwards {
				at += len(name) + 1
			}
		}
	}
	if got := (&names{file: bytes.NewReader(table.Bytes()), windows: 1}).at(1 << 30); got != "" {
		t.Errorf("beyond the table is %q", got)
	}
}
