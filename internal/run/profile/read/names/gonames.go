// SPDX-License-Identifier: Apache-2.0

package names

import (
	"debug/elf"

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
	sections, module := []*elf.Section{s}, uint64(0)
	if m := program.Section(".go.module"); m != nil && m.Type != elf.SHT_NOBITS {
		sections, module = append(sections, m), m.Addr
	}
	// A program that is linked to an address has its words in its file.
	words := func(address uint64, n int) []uint64 {
		for _, in := range sections {
			data := make([]byte, 8*n)
			if address < in.Addr || address-in.Addr >= in.Size {
				continue
			}
			if _, err := in.ReadAt(data, int64(address-in.Addr)); err != nil {
				return nil
			}
			all := make([]uint64, n)
			for i := range all {
				all[i] = program.ByteOrder.Uint64(data[8*i:])
			}
			return all
		}
		return nil
	}
	if !t.Start(s.Addr, module, words) {
		return nil
	}
	return t.Names(addresses)
}
