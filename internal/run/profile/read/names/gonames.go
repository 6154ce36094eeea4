// SPDX-License-Identifier: Apache-2.0

package names

import (
	"debug/elf"
	"io"

	"github.com/teescope/teescope/internal/lib/symbols"
)

// goNames returns names from the table of functions of a program in Go, which it has when it is stripped too. It returns none
// without a table.
func goNames(program *file, addresses []uint64) []string {
	s := program.Section(".gopclntab")
	if s == nil || s.Type == elf.SHT_NOBITS || s.Flags&elf.SHF_COMPRESSED != 0 || len(addresses) == 0 || program.Class != elf.ELFCLASS64 {
		return nil
	}
	t, err := symbols.OpenGoTable(s, program.ByteOrder)
	if err != nil {
		return nil
	}
	if t.Relative() {
		start := goStart(program, s)
		if start == 0 {
			return nil
		}
		t.SetStart(start)
	}
	return t.Names(addresses)
}

// goStart returns the address at which the code of Go begins, or 0. A program that is linked to an address has it in its file.
func goStart(program *file, table *elf.Section) uint64 {
	word := func(in io.ReaderAt, offset int64) uint64 {
		var b [8]byte
		if _, err := in.ReadAt(b[:], offset); err != nil {
			return 0
		}
		return program.ByteOrder.Uint64(b[:])
	}
	if start := word(table, symbols.StartAt); start != 0 {
		return start
	}
	module := program.Section(".go.module")
	if module == nil || module.Type == elf.SHT_NOBITS || word(module, symbols.ModuleTableAt) != table.Addr {
		return 0
	}
	return word(module, symbols.ModuleStartAt)
}
