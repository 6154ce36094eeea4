// SPDX-License-Identifier: Apache-2.0

// Package executable reads untrusted ELF files for x86-64: their functions, their data as it is after loading, and where in
// a function a probe may be set. It does not use more memory than a Chunk, run anything or depend on what a function means.
package executable

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Limits of what is read.
const (
	maxSegments = 128
	maxSections = 4096
	maxSymbols  = 1 << 20
	maxWindows  = 1 << 17 // reads of names of symbols; those of one table are usually in their order
	longestName = 2048    // of a function; those of C++ templates have hundreds of bytes
	// Chunk is the number of bytes of a file that are read at once, windowSize that of names of its symbols, and sectionChunk that of a section
	// that is read as a whole.
	Chunk, windowSize, sectionChunk = 64 << 10, 4 << 10, 1 << 20
)

// withAddends is the type of a section of relocations.
const withAddends = 4

// Program is an ELF file for x86-64: its segments and the location of its symbols.
type Program struct {
	file     io.ReaderAt
	segments []elf.Prog64
	sections []elf.Section64

	sectionNames uint16 // the section with the names of sections
}

// Function is a function symbol.
type Function struct {
	Name    string
	Address uint64 // as linked
	Size    uint64 // in bytes
	Global  bool   // other objects may call it
}

// ErrNotELF means that the file is not an ELF file for x86-64.
var ErrNotELF = errors.New("not an ELF file for x86-64")

// Read reads only the headers of an ELF file.
func Read(file io.ReaderAt) (*Program, error) {
	var h elf.Header64
	if err := readAt(file, 0, &h); err != nil {
		return nil, ErrNotELF
	}
	ident := elf.ELFMAG + string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)})
	kind := elf.Type(h.Type)
	if string(h.Ident[:6]) != ident || elf.Machine(h.Machine) != elf.EM_X86_64 || kind != elf.ET_EXEC && kind != elf.ET_DYN {
		return nil, ErrNotELF
	}
	if h.Phentsize != 56 || h.Phnum == 0 || h.Phnum > maxSegments || h.Shentsize != 64 && h.Shnum > 0 || h.Shnum > maxSections {
		return nil, errors.New("headers of another size, or too many of them")
	}
	p := &Program{file: file, segments: make([]elf.Prog64, h.Phnum), sections: make([]elf.Section64, h.Shnum), sectionNames: h.Shstrndx}
	if err := readAt(file, h.Phoff, p.segments); err != nil {
		return nil, fmt.Errorf("reading program headers: %w", err)
	}
	if err := readAt(file, h.Shoff, p.sections); err != nil {
		return nil, fmt.Errorf("reading section headers: %w", err)
	}
	return p, nil
}

// readAt decodes a value of fixed size. The file system reports an error for an offset beyond the end.
func readAt(file io.ReaderAt, offset uint64, into any) error {
	return binary.Read(io.NewSectionReader(file, int64(offset&(1<<62-1)), int64(binary.Size(into))), binary.LittleEndian, into)
}

// Offset returns the position in the file of the byte at an address, if a segment with these rights contains it.
func (p *Program) Offset(address uint64, rights elf.ProgFlag) (uint64, bool) {
	for _, s := range p.segments {
		if elf.ProgType(s.Type) == elf.PT_LOAD && elf.ProgFlag(s.Flags)&rights == rights &&
			address >= s.Vaddr && address-s.Vaddr < s.Filesz {
			return address - s.Vaddr + s.Off, true
		}
	}
	return 0, false
}

// Address is the inverse of Offset.
func (p *Program) Address(offset uint64, rights elf.ProgFlag) (uint64, bool) {
	for _, s := range p.segments {
		if elf.ProgType(s.Type) == elf.PT_LOAD && elf.ProgFlag(s.Flags)&rights == rights &&
			offset >= s.Off && offset-s.Off < s.Filesz {
			return offset - s.Off + s.Vaddr, true
		}
	}
	return 0, false
}

// Functions calls f for each function that the file defines, in both symbol tables.
func (p *Program) Functions(f func(Function)) error {
	return eachSymbol(p, func(entry []byte, names *names) {
		if elf.ST_TYPE(entry[4]) != elf.STT_FUNC || binary.LittleEndian.Uint16(entry[6:]) == uint16(elf.SHN_UNDEF) {
			return
		}
		f(Function{
			Name: names.at(binary.LittleEndian.Uint32(entry)), Address: binary.LittleEndian.Uint64(entry[8:]),
			Size: binary.LittleEndian.Uint64(entry[16:]), Global: elf.ST_BIND(entry[4]) != elf.STB_LOCAL,
		})
	})
}

// Refers reports whether the file has a global symbol of a name. It may define the symbol or import it from another file.
func (p *Program) Refers(name string) (found bool, err error) {
	err = eachSymbol(p, func(entry []byte, names *names) {
		found = found || elf.ST_BIND(entry[4]) != elf.STB_LOCAL && names.at(binary.LittleEndian.Uint32(entry)) == name
	})
	return found, err
}

// Mentions returns the first symbol of a program with one of these names, or "". The file may define the symbol or import it from
// another file.
func Mentions(p *Program, choice ...string) (found string, err error) {
	err = eachSymbol(p, func(entry []byte, names *names) {
		if found != "" {
			return
		}
		name, _, _ := strings.Cut(names.at(binary.LittleEndian.Uint32(entry)), "@") // a version may follow
		if slices.Contains(choice, name) {
			found = name
		}
	})
	return found, err
}

// eachSymbol calls f for each entry of both symbol tables.
func eachSymbol(p *Program, f func(entry []byte, names *names)) error {
	left, windows := uint64(2*maxSymbols), maxWindows // of all tables, which may overlap; a usual file has two
	for _, s := range p.sections {
		if t := elf.SectionType(s.Type); t != elf.SHT_SYMTAB && t != elf.SHT_DYNSYM {
			continue
		}
		if int(s.Link) >= len(p.sections) || s.Size/elf.Sym64Size > min(left, maxSymbols) {
			return errors.New("reading symbols: too many, or without names")
		}
		left -= s.Size / elf.Sym64Size
		names := &names{file: p.file, from: p.sections[s.Link].Off, windows: windows}
		if err := p.entries(s, elf.Sym64Size, func(entry []byte) { f(entry, names) }); err != nil {
			return fmt.Errorf("reading symbols: %w", err)
		}
		if windows = names.windows; windows == 0 {
			return errors.New("reading symbols: their names are too far apart")
		}
	}
	return nil
}

// IsGo reports whether the file has code of Go, by the sections that its linker writes and strip keeps.
func (p *Program) IsGo() bool {
	_, is := named(p, ".go.buildinfo", ".gopclntab", ".data.rel.ro.gopclntab", ".note.go.buildid")
	return is
}

// Section reads a section that is loaded into memory, and returns the address that it is linked to. It is nil if there is none
// of that name, or if it has more bytes than a limit.
func (p *Program) Section(name string, most uint64) (data []byte, address uint64) {
	s, ok := named(p, name)
	if !ok || s.Addr == 0 || s.Size > most {
		return nil, 0
	}
	data = make([]byte, s.Size)
	for at := 0; at < len(data); {
		n, err := p.file.ReadAt(data[at:min(at+sectionChunk, len(data))], int64((s.Off+uint64(at))&(1<<62-1)))
		if at += n; err != nil && at < len(data) {
			return nil, 0
		}
	}
	return data, s.Addr
}

// named returns the first section with one of these names.
func named(p *Program, choice ...string) (elf.Section64, bool) {
	if int(p.sectionNames) >= len(p.sections) {
		return elf.Section64{}, false
	}
	names := &names{file: p.file, from: p.sections[p.sectionNames].Off, windows: maxSections}
	for _, s := range p.sections {
		if slices.Contains(choice, names.at(s.Name)) {
			return s, true
		}
	}
	return elf.Section64{}, false
}

// entries reads a table in chunks.
func (p *Program) entries(s elf.Section64, size int, f func([]byte)) error {
	buffer := make([]byte, Chunk/size*size)
	table := io.NewSectionReader(p.file, int64(s.Off), int64(s.Size))
	for {
		n, err := io.ReadFull(table, buffer)
		for at := 0; at+size <= n; at += size {
			f(buffer[at : at+size])
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// names reads a string table through a window, because names of neighbouring symbols are usually near each other.
// The window is small, because a hostile file may have them far apart.
type names struct {
	file    io.ReaderAt
	from    uint64
	windows int // that may still be read; without one, names are empty
	start   uint64
	length  int
	window  [windowSize]byte
}

func (n *names) at(index uint32) string {
	name, whole := n.inWindow(uint64(index))
	if !whole && n.windows == 0 {
		return ""
	}
	if !whole {
		n.windows--
		n.length, _ = n.file.ReadAt(n.window[:], int64((n.from+uint64(index))&(1<<62-1))) // a short read means the end of the file
		n.start = uint64(index)
		name, _ = n.inWindow(n.start)
	}
	return name
}

// inWindow returns the name at a position of the table as far as the window has it, and whether that is the whole name.
func (n *names) inWindow(at uint64) (name string, whole bool) {
	if at < n.start || at >= n.start+uint64(n.length) {
		return "", false
	}
	from := n.window[at-n.start : n.length]
	end := bytes.IndexByte(from[:min(len(from), longestName)], 0)
	if end < 0 {
		return string(from[:min(len(from), longestName)]), len(from) >= longestName
	}
	return string(from[:end]), true
}

// Words returns 8-byte words of the file's data after loading at the addresses it was linked for, with
// relocations applied.
func (p *Program) Words(address uint64, n int) ([]uint64, error) {
	offset, ok := p.Offset(address, elf.PF_R)
	if !ok {
		return nil, fmt.Errorf("nothing of the file is at %#x", address)
	}
	words := make([]uint64, n)
	if err := readAt(p.file, offset, words); err != nil {
		return nil, fmt.Errorf("reading %d words at %#x: %w", n, address, err)
	}
	left := uint64(2 * maxSymbols) // relocations of all sections, which may overlap; a usual file has two sections
	for _, s := range p.sections {
		if s.Type != withAddends {
			continue
		}
		if s.Size/24 > left {
			return nil, errors.New("reading relocations: too many")
		}
		left -= s.Size / 24
		err := p.entries(s, 24, func(entry []byte) { // where, what, addend
			where := binary.LittleEndian.Uint64(entry) - address
			what := elf.R_X86_64(binary.LittleEndian.Uint32(entry[8:]))
			if where < uint64(8*n) && where%8 == 0 && what == elf.R_X86_64_RELATIVE {
				words[where/8] = binary.LittleEndian.Uint64(entry[16:])
			}
		})
		if err != nil {
			return nil, fmt.Errorf("reading relocations: %w", err)
		}
	}
	return words, nil
}

// Code calls f for each executable segment with its bytes, up to a limit, and the address that it is linked to.
func (p *Program) Code(most uint64, f func(text *io.SectionReader, address uint64) error) error {
	for _, s := range p.segments {
		if elf.ProgType(s.Type) != elf.PT_LOAD || elf.ProgFlag(s.Flags)&elf.PF_X == 0 {
			continue
		}
		if err := f(io.NewSectionReader(p.file, int64(s.Off), int64(min(s.Filesz, most))), s.Vaddr); err != nil {
			return err
		}
	}
	return nil
}

// Bytes reads n bytes of code at an address, or fewer at the end of the file.
func (p *Program) Bytes(address, n uint64) ([]byte, bool) {
	offset, ok := p.Offset(address, elf.PF_X)
	if !ok {
		return nil, false
	}
	code := make([]byte, n)
	read, err := p.file.ReadAt(code, int64(offset))
	return code, read == len(code) || err == nil
}
