// SPDX-License-Identifier: Apache-2.0

package names

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/lib/symbols"
)

const (
	maxSymbolBytes = 128 << 20 // of a table of symbols
	maxNameBytes   = 512 << 20 // of its names
	// behind is how many symbols before an address are inspected: one can be within another.
	behind = 64
)

// function is a symbol with the addresses that it covers.
type function struct {
	start, end uint64
	name       string
	binding    elf.SymBind
}

// lookUp finds names at ascending offsets. Symbols have addresses as linked, which the segments of the program turn into
// offsets. As in perf, the first table of symbols counts, and the dynamic ones only if there is none.
func lookUp(sources []*file, program *file, offsets []uint64) (names []string, err error) {
	names = make([]string, len(offsets))
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("a damaged ELF file: %v", broken)
		}
	}()
	list, err := functions(sources, stubs(program))
	if err != nil {
		return names, err
	}
	var without []uint64
	var of []int
	for i, offset := range offsets {
		address, ok := linked(program, offset)
		if !ok {
			continue
		}
		if names[i] = nameAt(list, address); names[i] == "" {
			without, of = append(without, address), append(of, i)
		}
	}
	if !slices.IsSorted(without) {
		return names, nil // the segments of a usual program are in order
	}
	for i, name := range goNames(program, without) {
		names[of[i]] = name
	}
	return names, nil
}

func linked(program *file, offset uint64) (uint64, bool) {
	for _, p := range program.Progs {
		if p.Type == elf.PT_LOAD && offset >= p.Off && offset-p.Off < p.Filesz {
			return offset - p.Off + p.Vaddr, true
		}
	}
	return 0, false
}

func functions(sources []*file, stubs []function) ([]function, error) {
	for _, kind := range []elf.SectionType{elf.SHT_SYMTAB, elf.SHT_DYNSYM} {
		for _, f := range sources {
			s := f.SectionByType(kind)
			if s == nil || s.Type == elf.SHT_NOBITS || s.Size == 0 {
				continue
			}
			if int(s.Link) >= len(f.Sections) || s.Size > maxSymbolBytes || f.Sections[s.Link].Size > maxNameBytes || (s.Flags|f.Sections[s.Link].Flags)&elf.SHF_COMPRESSED != 0 {
				return nil, errors.New("reading symbols: too many, or without names")
			}
			read := f.Symbols
			if kind == elf.SHT_DYNSYM {
				read = f.DynamicSymbols
			}
			all, err := read()
			if err != nil {
				return nil, fmt.Errorf("reading symbols: %w", err)
			}
			if list := ordered(f.File, all, stubs); len(list) > 0 {
				return list, nil
			}
		}
	}
	return nil, nil
}

// stubs returns the entries of a program's procedure linkage table, by which it calls functions of libraries. No symbol names
// them. Their names are those that perf and objdump give: clock_gettime@plt. The n-th entry belongs to the n-th relocation
// (System V ABI for x86-64 and for AArch64). A table that cannot be read has none.
func stubs(program *file) []function {
	const entry, relocation = 16, 24 // bytes, for both processors
	header := map[elf.Machine]uint64{elf.EM_X86_64: entry, elf.EM_AARCH64: 2 * entry}[program.Machine]
	table, relocations, names := program.Section(".plt"), program.Section(".rela.plt"), program.SectionByType(elf.SHT_DYNSYM)
	if header == 0 || table == nil || relocations == nil || names == nil || relocations.Size > maxSymbolBytes || names.Size > maxSymbolBytes ||
		relocations.Type == elf.SHT_NOBITS || (relocations.Flags|names.Flags)&elf.SHF_COMPRESSED != 0 ||
		int(names.Link) >= len(program.Sections) || program.Sections[names.Link].Size > maxNameBytes {
		return nil
	}
	data, err := relocations.Data()
	if err != nil {
		return nil
	}
	dynamic, err := program.DynamicSymbols() // without the first, which is empty
	if err != nil {
		return nil
	}
	var all []function
	for i := uint64(0); (i+1)*relocation <= uint64(len(data)) && header+(i+1)*entry <= table.Size; i++ {
		at := program.ByteOrder.Uint32(data[i*relocation+12:]) // of the symbol, in the upper half of r_info
		if at == 0 || uint64(at) > uint64(len(dynamic)) || dynamic[at-1].Name == "" || len(dynamic[at-1].Name) > symbols.Longest {
			continue
		}
		start := table.Addr + header + i*entry
		all = append(all, function{start, start + entry, dynamic[at-1].Name + "@plt", elf.STB_LOCAL})
	}
	return all
}

// ordered returns the functions by address, of several at one address the best. A function without a size ends where the
// next one begins.
func ordered(f *elf.File, all []elf.Symbol, stubs []function) []function {
	list := slices.Clone(stubs)
	for _, s := range all {
		kind := elf.ST_TYPE(s.Info)
		if s.Name == "" || s.Section == elf.SHN_UNDEF || len(s.Name) > symbols.Longest {
			continue
		}
		if kind == elf.STT_NOTYPE {
			visible := elf.ST_VISIBILITY(s.Other)
			if int(s.Section) >= len(f.Sections) || !strings.Contains(f.Sections[s.Section].Name, "text") || visible == elf.STV_HIDDEN || visible == elf.STV_INTERNAL {
				continue
			}
		} else if kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC {
			continue
		}
		if f.Machine == elf.EM_AARCH64 && (strings.HasPrefix(s.Name, "$x") || strings.HasPrefix(s.Name, "$d")) {
			continue // marks of code and data
		}
		list = append(list, function{s.Value, s.Value + s.Size, s.Name, elf.ST_BIND(s.Info)})
	}
	slices.SortStableFunc(list, func(a, b function) int { return cmp.Compare(a.start, b.start) })
	for i := range list {
		if list[i].end <= list[i].start {
			list[i].end = list[i].start
			if i+1 < len(list) {
				list[i].end = list[i+1].start
			} else if end := (list[i].start+4095)&^4095 + 4096; end > list[i].start {
				list[i].end = end
			}
		}
	}
	best := list[:0]
	for _, one := range list {
		if n := len(best); n > 0 && best[n-1].start == one.start {
			if one.better(best[n-1]) {
				best[n-1] = one
			}
			continue
		}
		best = append(best, one)
	}
	return best
}

// better is the order of perf (symbols__fixup_duplicate in tools/perf/util/symbol.c): a symbol with a size, that is not weak,
// that is global, with fewer underscores in front, with a longer name.
func (a function) better(than function) bool {
	yes := func(b bool) int { return map[bool]int{true: 1}[b] }
	under := func(s string) int { return len(s) - len(strings.TrimLeft(s, "_")) }
	return cmp.Or(
		cmp.Compare(yes(a.end > a.start), yes(than.end > than.start)),
		cmp.Compare(yes(than.binding == elf.STB_WEAK), yes(a.binding == elf.STB_WEAK)),
		cmp.Compare(yes(a.binding == elf.STB_GLOBAL), yes(than.binding == elf.STB_GLOBAL)),
		cmp.Compare(under(than.name), under(a.name)),
		cmp.Compare(len(a.name), len(than.name)),
	) > 0
}

// nameAt returns the name of the innermost function at an address.
func nameAt(list []function, address uint64) string {
	at, found := slices.BinarySearchFunc(list, address, func(f function, a uint64) int { return cmp.Compare(f.start, a) })
	if !found {
		at--
	}
	for i := at; i >= 0 && i > at-behind; i-- {
		if address < list[i].end {
			return list[i].name
		}
	}
	return ""
}
