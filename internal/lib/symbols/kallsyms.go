// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
)

// longestFunction is how far an address may be behind the beginning of a function of the kernel, whose end is not known if it
// is the last of a module.
const longestFunction = 256 << 10

// KernelSymbol is a function of the kernel.
type KernelSymbol struct {
	Address      uint64
	Name, Module string // the module without brackets, empty for the kernel itself
}

// Kallsyms returns the functions of ascending addresses in /proc/kallsyms, whose lines are "ADDRESS TYPE NAME" and for
// modules "\t[MODULE]". Shown is false if the kernel hides addresses, which are then all 0. A function ends where the next
// one begins. Of several with the same address, the first counts.
func Kallsyms(data []byte, addresses []uint64) (found []KernelSymbol, shown bool) {
	found = make([]KernelSymbol, len(addresses))
	type entry struct {
		address uint64
		line    []byte
	}
	var all []entry
	for line := range bytes.Lines(data) {
		number, rest, _ := bytes.Cut(line, []byte(" "))
		address, err := strconv.ParseUint(string(number), 16, 64)
		if err != nil || address == 0 || len(rest) < 3 || rest[1] != ' ' {
			continue
		}
		shown = true
		if bytes.IndexByte([]byte("tTwW"), rest[0]) >= 0 {
			all = append(all, entry{address, rest[2:]})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.address, b.address) })
	for i, a := range addresses {
		at, exact := slices.BinarySearchFunc(all, a, func(e entry, a uint64) int { return cmp.Compare(e.address, a) })
		if !exact {
			if at--; at < 0 || a-all[at].address > longestFunction {
				continue
			}
			at, _ = slices.BinarySearchFunc(all, all[at].address, func(e entry, a uint64) int { return cmp.Compare(e.address, a) })
		}
		name, module, _ := bytes.Cut(bytes.TrimRight(all[at].line, "\n"), []byte("\t"))
		if string(name) == "_etext" || string(name) == "__init_end" || len(name) > Longest {
			continue
		}
		found[i] = KernelSymbol{all[at].address, string(name), string(bytes.Trim(module, "[]"))}
	}
	return found, shown
}
