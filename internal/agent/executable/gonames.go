// SPDX-License-Identifier: Apache-2.0

package executable

import (
	"debug/elf"
	"encoding/binary"
	"io"

	"github.com/teescope/teescope/internal/lib/symbols"
)

// goNames adds names from the table of functions of Go, which a stripped program has too, to those that symbols have given.
// Without a table that can be understood, it adds none.
func goNames(p *Program, addresses []uint64, found []string) {
	var without []uint64
	for i, name := range found {
		if name == "" {
			without = append(without, addresses[i])
		}
	}
	if len(without) == 0 {
		return
	}
	t := goTable(p)
	if t == nil {
		return
	}
	more := t.Names(without)
	for i := range found {
		if found[i] == "" {
			found[i], more = more[0], more[1:]
		}
	}
}

// goTables are the sections that may have the table of functions.
var goTables = []string{".gopclntab", ".data.rel.ro.gopclntab"}

// goTable opens the table of functions, or returns nil if there is none.
func goTable(p *Program) *symbols.GoTable {
	s, ok := named(p, goTables...)
	if !ok || elf.SectionType(s.Type) == elf.SHT_NOBITS {
		return nil
	}
	t, err := symbols.OpenGoTable(io.NewSectionReader(p.file, int64(s.Off&(1<<62-1)), int64(s.Size&(1<<62-1))), binary.LittleEndian)
	if err != nil {
		return nil
	}
	module, _ := named(p, ".go.module")
	words := func(address uint64, n int) []uint64 {
		all, err := p.Words(address, n)
		if err != nil {
			return nil
		}
		return all
	}
	if !t.Start(s.Addr, module.Addr, words) {
		return nil
	}
	return t
}
