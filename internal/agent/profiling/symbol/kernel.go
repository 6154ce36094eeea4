// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"time"

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

// lookUp finds functions in the kernel's list. The privileges at the time of opening decide whether it has addresses, so it was opened at
// the start.
func (t *Table) lookUp(addresses []uint64) (found []symbols.KernelSymbol, shown bool, err error) {
	if t.kallsyms == nil {
		return nil, false, os.ErrNotExist
	}
	if err := t.kallsyms.Rewind(); err != nil {
		return nil, false, fmt.Errorf("reading the kernel's symbols: %w", err)
	}
	found, shown, err = symbols.Kallsyms(t.kallsyms, addresses)
	if err != nil {
		return nil, false, fmt.Errorf("reading the kernel's symbols: %w", err) // a function may end later than the part that was read shows
	}
	return found, shown, nil
}

// lookAfter is the time after which addresses of the kernel without a name are looked for again: a module may have been loaded there.
// Reading the list takes as long as all other names of a profile.
const lookAfter = 10 * time.Minute

// resolveKernel finds the names of addresses in the kernel and its modules, and of eBPF programs.
func (t *Table) resolveKernel(list []int, locations []Location, names []Name) {
	if now := time.Now(); now.After(t.kernelAgain) || len(t.nameless) > maxNamed {
		t.nameless, t.kernelAgain = map[uint64]string{}, now.Add(lookAfter)
	}
	var all []uint64
	var of []int
	for _, i := range list {
		address := locations[i].Address
		if reason, known := t.nameless[address]; known {
			names[i].Reason = reason
			continue
		}
		all, of = append(all, address), append(of, i)
	}
	if len(all) == 0 {
		return
	}
	addresses, index := sorted(all)
	found, shown, err := t.lookUp(addresses)
	for k, i := range of {
		if len(found) > 0 && found[index[k]].Name != "" {
			s := found[index[k]]
			names[i].System = s.Name
			t.functions.add(s)
			if s.Module != "" {
				names[i].Library = "[" + s.Module + "]"
			}
			continue
		}
		if names[i].Reason = foreign; err != nil || !shown {
			names[i].Reason = hidden
		}
		if t.Remember && err == nil {
			t.nameless[all[k]] = names[i].Reason
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
