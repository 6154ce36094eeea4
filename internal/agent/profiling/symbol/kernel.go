// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/executable"
)

// Limits of the kernel's list of symbols, which has 10 MB on a usual machine.
const (
	maxKallsyms = 128 << 20 // bytes
	maxNotes    = 64 << 10
	// longestFunction is how far an address may be behind the beginning of a function of the kernel, whose end is not known
	// if it is the last of a module.
	longestFunction = 256 << 10
)

func (t *Table) kernelBuildID() string {
	notes, _ := t.Sys.Read(maxNotes, "kernel", "notes") // none: the ID is unknown
	return executable.BuildIDOfNotes(notes)
}

// kernelSymbol is a function of the kernel.
type kernelSymbol struct {
	address      uint64
	name, module string // the module without brackets, empty for the kernel itself
}

// resolveKernel finds the names of addresses in the kernel and its modules, and of eBPF programs.
func (t *Table) resolveKernel(list []int, locations []Location, names []Name) {
	data, err := t.Proc.ReadLines(maxKallsyms, "kallsyms")
	var all []uint64
	for _, i := range list {
		all = append(all, locations[i].Address)
	}
	addresses, index := sorted(all)
	found, shown := namesOfKallsyms(data, addresses)
	for k, i := range list {
		s := found[index[k]]
		switch {
		case s.name != "":
			names[i].System = s.name
			if s.module != "" {
				names[i].Library = "[" + s.module + "]"
			}
		case err != nil || !shown:
			names[i].Reason = Hidden
		default:
			names[i].Reason = Foreign
		}
	}
}

// namesOfKallsyms returns the functions of ascending addresses in /proc/kallsyms, whose lines are "ADDRESS TYPE NAME" and for
// modules "\t[MODULE]". Shown is false if the kernel hides addresses, which are then all 0. A function ends where the next
// one begins. Of several with the same address, the first counts.
func namesOfKallsyms(data []byte, addresses []uint64) (found []kernelSymbol, shown bool) {
	found = make([]kernelSymbol, len(addresses))
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
		if string(name) == "_etext" || string(name) == "__init_end" || len(name) > executable.LongestSymbol {
			continue
		}
		found[i] = kernelSymbol{all[at].address, string(name), string(bytes.Trim(module, "[]"))}
	}
	return found, shown
}
