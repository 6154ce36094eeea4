// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"

	"github.com/teescope/teescope/internal/agent/profiling"
)

const (
	// maxNamed is the limit of names that are kept. If there are more, all are forgotten.
	maxNamed = 1 << 16
	// A file that no process uses is remembered for so many prunings, and so many files are.
	maxPrunings, maxClosed = 30, 1024
)

// namedKey is an address whose name does not change: in a file, or in a module of the kernel.
type namedKey struct {
	file    *file // nil for a module
	address uint64
}

// keyOf returns the key of a location, and false if its name can change.
func (t *Table) keyOf(l Location) (key namedKey, ok bool) {
	switch m := l.Mapping; {
	case !t.Remember || m == nil:
		return key, false
	case m.kind == ofKernel:
		return namedKey{address: l.Address}, true
	case m.kind == ofFile && m.file != nil:
		return namedKey{m.file, l.Address - m.Start + m.Offset}, true
	}
	return key, false
}

func (t *Table) recall(l Location) (Name, bool) {
	key, ok := t.keyOf(l)
	if !ok {
		return Name{}, false
	}
	if name, known := t.known[key]; known {
		return name, true
	}
	if key.file == nil {
		return t.functions.at(key.address)
	}
	return Name{}, false
}

// remember keeps a name. An address without a name is looked for again: reading may have failed, and the kernel may load code there.
func (t *Table) remember(l Location, name Name) {
	key, ok := t.keyOf(l)
	if !ok || name.Function == "" {
		return
	}
	if key.file == nil {
		if _, whole := t.functions.at(key.address); whole {
			return // the function is known, and so each of its addresses
		}
	}
	if t.known == nil || len(t.known) >= maxNamed {
		t.known = map[namedKey]Name{}
	}
	t.known[key] = name
}

// Prune forgets the processes that have ended, and closes the files that no other process has. It forgets all if the table is
// half full, so that programs that were replaced in a process do not fill it. Locations of what was forgotten must not be
// resolved any more. It returns which processes these are.
func (t *Table) Prune() (gone []profiling.Process, err error) {
	all := len(t.processes) > maxProcesses/2 || t.mapped > maxMappings/2 || t.open > maxFiles/2
	used, mapped := map[*file]bool{}, 0
	var errs []error
	for id, p := range t.processes {
		if all || !t.runs(id) {
			if p.root != nil {
				errs = append(errs, p.root.Close())
			}
			delete(t.processes, id)
			gone = append(gone, id)
			continue
		}
		mapped += len(p.mappings)
		for _, m := range p.mappings {
			used[m.file] = true
		}
	}
	t.mapped = mapped
	remembered := map[*file]bool{}
	for key, f := range t.files {
		if used[f] {
			continue
		}
		if f.program != nil {
			t.open--
			errs = append(errs, f.Close())
		} else if f.closed == 0 {
			delete(t.files, key) // not an ELF file
			continue
		}
		if f.closed++; f.closed > maxPrunings || len(remembered) >= maxClosed {
			delete(t.files, key)
			continue
		}
		remembered[f] = true
	}
	for key := range t.known {
		if key.file != nil && !used[key.file] && !remembered[key.file] {
			delete(t.known, key)
		}
	}
	return gone, errors.Join(errs...)
}
