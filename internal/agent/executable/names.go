// SPDX-License-Identifier: Apache-2.0

package executable

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/teescope/teescope/internal/lib/symbols"
)

// Limits of looking for the names of addresses.
const (
	maxAllSymbols = 1 << 23 // in all tables of a file. Debug files of browsers have 2 million.
	maxMatches    = 1 << 25 // symbols that cover an address, over all addresses
	maxNotes      = 64 << 10
	// unsized is the maximum distance of an address from a symbol without a size. Such symbols are from assembly code.
	unsized = 4096
)

// BuildID returns the build ID in hexadecimal digits, or "" if the file has none.
func (p *Program) BuildID() string {
	for _, s := range p.segments {
		if elf.ProgType(s.Type) != elf.PT_NOTE {
			continue
		}
		notes := make([]byte, min(s.Filesz, maxNotes))
		n, err := p.file.ReadAt(notes, int64(s.Off&(1<<62-1)))
		if err != nil && !errors.Is(err, io.EOF) {
			continue
		}
		if id := symbols.BuildID(notes[:n], binary.LittleEndian); id != "" {
			return id
		}
	}
	return ""
}

// candidate is the symbol that an address belongs to, as far as the tables were read.
type candidate struct {
	start, size uint64
	rank        int
	names       uint64 // position of the table of names
	name        uint32 // index in it
	found       bool
}

// better reports whether a symbol describes the address better: a symbol with a size before one without, then the one that
// begins closest, then a function before an untyped symbol, then a global one before a weak one before a local one.
func (c *candidate) better(than *candidate) bool {
	if !than.found {
		return true
	}
	sized := func(c *candidate) int { return map[bool]int{true: 1}[c.size > 0] }
	return cmp.Or(cmp.Compare(sized(c), sized(than)), cmp.Compare(c.start, than.start), cmp.Compare(c.rank, than.rank)) > 0
}

// Names returns the name of the function at each of these addresses, which are ascending and as linked. A name is empty if
// neither a symbol nor Go's table of functions covers the address. It reads all tables once, in chunks, so that its memory
// depends on the addresses only.
func (p *Program) Names(addresses []uint64) ([]string, error) {
	best := make([]candidate, len(addresses))
	symbols, matches := uint64(0), 0
	for _, s := range p.sections {
		if t := elf.SectionType(s.Type); t != elf.SHT_SYMTAB && t != elf.SHT_DYNSYM {
			continue
		}
		if symbols += s.Size / elf.Sym64Size; int(s.Link) >= len(p.sections) || symbols > maxAllSymbols {
			return nil, errors.New("reading symbols: too many, or without names")
		}
		names := p.sections[s.Link].Off
		err := p.entries(s, elf.Sym64Size, func(entry []byte) {
			c, ok := p.symbol(entry)
			if !ok || matches > maxMatches {
				return
			}
			c.names = names
			end := c.start + cmp.Or(c.size, unsized)
			if end < c.start {
				return
			}
			at, _ := slices.BinarySearch(addresses, c.start)
			for ; at < len(addresses) && addresses[at] < end && matches <= maxMatches; at++ {
				matches++
				if c.better(&best[at]) {
					best[at] = c
				}
			}
		})
		if err != nil {
			return nil, fmt.Errorf("reading symbols: %w", err)
		}
	}
	if matches > maxMatches {
		return nil, errors.New("reading symbols: too many of them overlap")
	}
	found, err := p.read(best)
	if err == nil {
		goNames(p, addresses, found)
	}
	return found, err
}

// NamesCost returns how many bytes Program.Names reads for a number of addresses, at most. The file may claim any number.
func NamesCost(p *Program, addresses int) uint64 {
	const most, looks, reads = 1 << 40, 3, 2 // bytes of a section, looks for one by name, and reads of all relocations
	cost := uint64(addresses)*2*symbols.Longest + uint64(len(p.sections))*looks*windowSize
	relocations := uint64(0)
	for _, s := range p.sections {
		switch elf.SectionType(s.Type) {
		case elf.SHT_SYMTAB, elf.SHT_DYNSYM:
			cost += min(s.Size, most)
		case withAddends:
			relocations += min(s.Size, most)
		}
	}
	if s, ok := named(p, goTables...); ok {
		cost += min(s.Size, most) + reads*relocations
	}
	return cost
}

// symbol reads an entry of a table. It returns false if that is not code of the file.
func (p *Program) symbol(entry []byte) (candidate, bool) {
	section := binary.LittleEndian.Uint16(entry[6:])
	c := candidate{
		name: binary.LittleEndian.Uint32(entry), start: binary.LittleEndian.Uint64(entry[8:]), size: binary.LittleEndian.Uint64(entry[16:]), found: true,
	}
	switch elf.ST_TYPE(entry[4]) {
	case elf.STT_FUNC, elf.STT_GNU_IFUNC:
		c.rank = 10
	case elf.STT_NOTYPE:
		if int(section) >= len(p.sections) || p.sections[section].Flags&uint64(elf.SHF_EXECINSTR) == 0 {
			return c, false
		}
	default:
		return c, false
	}
	switch elf.ST_BIND(entry[4]) {
	case elf.STB_GLOBAL:
		c.rank += 2
	case elf.STB_WEAK:
		c.rank++
	}
	return c, section != uint16(elf.SHN_UNDEF) && c.name != 0
}

// read reads the names of symbols. Several addresses of one function read it once.
func (p *Program) read(best []candidate) ([]string, error) {
	list := make([]string, len(best))
	known := map[uint64]string{}
	buffer := make([]byte, symbols.Longest)
	for i, c := range best {
		if !c.found {
			continue
		}
		at := (c.names + uint64(c.name)) & (1<<62 - 1)
		name, ok := known[at]
		if !ok {
			n, err := p.file.ReadAt(buffer, int64(at))
			if err != nil && !errors.Is(err, io.EOF) {
				return nil, fmt.Errorf("reading names of symbols: %w", err)
			}
			text, _, _ := bytes.Cut(buffer[:n], []byte{0})
			name = string(text)
			known[at] = name
		}
		list[i] = name
	}
	return list, nil
}
