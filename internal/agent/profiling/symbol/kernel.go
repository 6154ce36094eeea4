// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"

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
