// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of what is read of an executable, which anybody may have written. Memory is that of one chunk.
const (
	maxSegments = 128
	maxSections = 4096
	maxSymbols  = 1 << 20
	longestName = 128
	chunk       = 64 << 10
)

// program is an ELF file for x86-64: what is mapped of it, and where its symbols are.
type program struct {
	file     io.ReaderAt
	segments []elf.Prog64
	sections []elf.Section64
}

// function is a function symbol.
type function struct {
	name    string
	address uint64 // as linked
	size    uint64 // in bytes
	global  bool   // it may be called from other objects
}

var errNotELF = errors.New("not an ELF file for x86-64")

// readProgram reads the headers of an ELF file, and those alone.
func readProgram(file io.ReaderAt) (*program, error) {
	var h elf.Header64
	if err := readAt(file, 0, &h); err != nil {
		return nil, errNotELF
	}
	ident := elf.ELFMAG + string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB)})
	kind := elf.Type(h.Type)
	if string(h.Ident[:6]) != ident || elf.Machine(h.Machine) != elf.EM_X86_64 || kind != elf.ET_EXEC && kind != elf.ET_DYN {
		return nil, errNotELF
	}
	if h.Phentsize != 56 || h.Phnum == 0 || h.Phnum > maxSegments || h.Shentsize != 64 && h.Shnum > 0 || h.Shnum > maxSections {
		return nil, errors.New("headers of another size, or too many of them")
	}
	p := &program{file: file, segments: make([]elf.Prog64, h.Phnum), sections: make([]elf.Section64, h.Shnum)}
	if err := readAt(file, h.Phoff, p.segments); err != nil {
		return nil, fmt.Errorf("reading program headers: %w", err)
	}
	if err := readAt(file, h.Shoff, p.sections); err != nil {
		return nil, fmt.Errorf("reading section headers: %w", err)
	}
	return p, nil
}

// readAt decodes a value of fixed size. An offset beyond all files is an error of the file system.
func readAt(file io.ReaderAt, offset uint64, into any) error {
	return binary.Read(io.NewSectionReader(file, int64(offset&(1<<62-1)), int64(binary.Size(into))), binary.LittleEndian, into)
}

// offset is where the byte at an address is in the file, if it is in a segment with these rights.
func (p *program) offset(address uint64, rights elf.ProgFlag) (uint64, bool) {
	for _, s := range p.segments {
		if elf.ProgType(s.Type) == elf.PT_LOAD && elf.ProgFlag(s.Flags)&rights == rights &&
			address >= s.Vaddr && address-s.Vaddr < s.Filesz {
			return address - s.Vaddr + s.Off, true
		}
	}
	return 0, false
}

// address is the inverse of offset.
func (p *program) address(offset uint64, rights elf.ProgFlag) (uint64, bool) {
	for _, s := range p.segments {
		if elf.ProgType(s.Type) == elf.PT_LOAD && elf.ProgFlag(s.Flags)&rights == rights &&
			offset >= s.Off && offset-s.Off < s.Filesz {
			return offset - s.Off + s.Vaddr, true
		}
	}
	return 0, false
}

// functions calls f for each function that the file defines, of both symbol tables.
func (p *program) functions(f func(function)) error {
	for _, s := range p.sections {
		if t := elf.SectionType(s.Type); t != elf.SHT_SYMTAB && t != elf.SHT_DYNSYM {
			continue
		}
		if int(s.Link) >= len(p.sections) || s.Size/elf.Sym64Size > maxSymbols {
			return errors.New("reading symbols: too many, or without names")
		}
		names := &names{file: p.file, from: p.sections[s.Link].Off}
		err := p.entries(s, elf.Sym64Size, func(entry []byte) {
			if elf.ST_TYPE(entry[4]) != elf.STT_FUNC || binary.LittleEndian.Uint16(entry[6:]) == uint16(elf.SHN_UNDEF) {
				return
			}
			f(function{
				name: names.at(binary.LittleEndian.Uint32(entry)), address: binary.LittleEndian.Uint64(entry[8:]),
				size: binary.LittleEndian.Uint64(entry[16:]), global: elf.ST_BIND(entry[4]) != elf.STB_LOCAL,
			})
		})
		if err != nil {
			return fmt.Errorf("reading symbols: %w", err)
		}
	}
	return nil
}

// entries passes over a table in chunks.
func (p *program) entries(s elf.Section64, size int, f func([]byte)) error {
	buffer := make([]byte, chunk/size*size)
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

// names reads a string table through a window: names of neighbours are mostly neighbours. The window is small,
// for a file may be made so that they never are.
type names struct {
	file   io.ReaderAt
	from   uint64
	start  uint64
	length int
	window [4 << 10]byte
}

func (n *names) at(index uint32) string {
	i := uint64(index)
	if i < n.start || i+longestName > n.start+uint64(n.length) {
		n.length, _ = n.file.ReadAt(n.window[:], int64((n.from+i)&(1<<62-1))) // a short read is the end of the file
		n.start = i
	}
	rest := n.window[i-n.start : n.length]
	name, _, _ := strings.Cut(string(rest[:min(len(rest), longestName)]), "\x00")
	return name
}

// words returns 8-byte words of the file's data as they are when it is loaded at the addresses it was linked
// for: with the relocations that the file asks for.
func (p *program) words(address uint64, n int) ([]uint64, error) {
	offset, ok := p.offset(address, elf.PF_R)
	if !ok {
		return nil, fmt.Errorf("nothing of the file is at %#x", address)
	}
	words := make([]uint64, n)
	if err := readAt(p.file, offset, words); err != nil {
		return nil, fmt.Errorf("reading %d words at %#x: %w", n, address, err)
	}
	for _, s := range p.sections {
		const withAddends = 4 // type of a section of relocations
		if s.Type != withAddends || s.Size/24 > maxSymbols {
			continue
		}
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
