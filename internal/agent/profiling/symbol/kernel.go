// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/symbols"
)

// Limits of the kernel's list of symbols, which has 10 MB on a usual machine.
const (
	maxKallsyms = 128 << 20 // bytes
	maxNotes    = 64 << 10
)

func (t *Table) kernelBuildID() string {
	notes, _ := t.Sys.Read(maxNotes, "kernel", "notes") // none: the ID is unknown
	return symbols.BuildID(notes, binary.NativeEndian)
}

// readKallsyms reads the kernel's list. The privileges at the time of opening decide whether it has addresses, so it was opened
// at the start.
func (t *Table) readKallsyms() ([]byte, error) {
	if t.kallsyms == nil {
		return nil, os.ErrNotExist
	}
	if err := t.kallsyms.Rewind(); err != nil {
		return nil, fmt.Errorf("reading the kernel's symbols: %w", err)
	}
	data, err := io.ReadAll(t.kallsyms)
	if err != nil {
		return nil, fmt.Errorf("reading the kernel's symbols: %w", err)
	}
	return hostfs.WholeLines(data, maxKallsyms), nil
}

// resolveKernel finds the names of addresses in the kernel and its modules, and of eBPF programs.
func (t *Table) resolveKernel(list []int, locations []Location, names []Name) {
	data, err := t.readKallsyms()
	var all []uint64
	for _, i := range list {
		all = append(all, locations[i].Address)
	}
	addresses, index := sorted(all)
	found, shown := symbols.Kallsyms(data, addresses)
	for k, i := range list {
		s := found[index[k]]
		switch {
		case s.Name != "":
			names[i].System = s.Name
			t.functions.add(s)
			if s.Module != "" {
				names[i].Library = "[" + s.Module + "]"
			}
		case err != nil || !shown:
			names[i].Reason = hidden
		default:
			names[i].Reason = foreign
		}
	}
}

// kernelFunctions are functions of the kernel, ascending. Those of modules and eBPF programs are not among them, because others may
// be loaded in their place.
type kernelFunctions []symbols.KernelSymbol

// maxFunctions is the limit of functions that are kept. A kernel has 100,000, and a machine uses a few thousand of them.
const maxFunctions = 1 << 14

func (all *kernelFunctions) add(s symbols.KernelSymbol) {
	at, known := all.find(s.Address)
	if !known && s.Module == "" && len(*all) < maxFunctions {
		*all = slices.Insert(*all, at, s)
	}
}

func (all kernelFunctions) find(address uint64) (at int, exact bool) {
	return slices.BinarySearchFunc(all, address, func(s symbols.KernelSymbol, a uint64) int { return cmp.Compare(s.Address, a) })
}

// at returns the name of the function at an address.
func (all kernelFunctions) at(address uint64) (Name, bool) {
	at, exact := all.find(address)
	if !exact {
		at--
	}
	if at < 0 || address >= all[at].End {
		return Name{}, false
	}
	return Name{Function: symbols.Readable(all[at].Name), System: all[at].Name}, true
}
