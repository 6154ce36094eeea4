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

// goTable opens the table of functions, or returns nil if there is none.
func goTable(p *Program) *symbols.GoTable {
	s, ok := named(p, ".gopclntab", ".data.rel.ro.gopclntab")
	if !ok || elf.SectionType(s.Type) == elf.SHT_NOBITS {
		return nil
	}
	t, err := symbols.OpenGoTable(io.NewSectionReader(p.file, int64(s.Off&(1<<62-1)), int64(s.Size&(1<<62-1))), binary.LittleEndian)
	if err != nil {
		return nil
	}
	if !t.Relative() {
		return t
	}
	if start, err := p.Words(s.Addr+symbols.StartAt, 1); err == nil && start[0] != 0 {
		t.SetStart(start[0])
		return t
	}
	module, ok := named(p, ".go.module")
	if !ok {
		return nil
	}
	words, err := p.Words(module.Addr, symbols.ModuleStartAt/8+1)
	if err != nil || words[symbols.ModuleTableAt/8] != s.Addr {
		return nil
	}
	t.SetStart(words[symbols.ModuleStartAt/8])
	return t
}
