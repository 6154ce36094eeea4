// SPDX-License-Identifier: Apache-2.0

// Package unwind makes tables of the call frame information (.eh_frame) of files, by which the eBPF program walks stacks of
// programs without frame pointers. It does not walk a stack itself, read the memory of a process or evaluate expressions
// other than those of the linker's stubs and of signals: such code is walked by frame pointers.
package unwind

import (
	"debug/elf"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
)

// Limits of the cost of files.
const (
	maxSection = 64 << 20         // bytes of a section .eh_frame
	maxSpent   = 10 * time.Second // for the sections of all files; 4 million rows of libraries take less than one
)

// Tables are those of all files and processes. They are not safe for concurrent use.
type Tables struct {
	sampler *profiling.Sampler
	symbols *symbol.Table
	used    int                       // rows
	files   map[any]span              // by the version of the file
	looks   map[profiling.Process]int // of the processes that have tables
	spent   time.Duration             // for sections
	full    bool
}

// span are the rows of a file.
type span struct{ first, n int }

// New returns tables without a file.
func New(sampler *profiling.Sampler, symbols *symbol.Table) *Tables {
	return &Tables{sampler: sampler, symbols: symbols, files: map[any]span{}, looks: map[profiling.Process]int{}}
}

// Full reports whether a file or process had no room. Its stacks are found by frame pointers.
func (t *Tables) Full() bool { return t.full }

// Add sets the tables of a process, if its mappings were read since the last call.
func (t *Tables) Add(p *symbol.Process) error {
	looks, known := t.looks[p.Process]
	if p.Looks() == looks || !t.sampler.Unwinds() {
		return nil
	}
	if !known && len(t.looks) >= profiling.MaxUnwound {
		t.full = true
		return nil
	}
	t.looks[p.Process] = p.Looks()
	if p.Mappings() > profiling.MaxMappings { // and their files must not be opened
		t.full = true
		return nil
	}
	var all []profiling.Code
	rows := 0
	for _, c := range t.symbols.Code(p) {
		one := profiling.Code{Start: c.Start, End: c.End}
		if s := t.rows(c); s.n > 0 {
			if linked, ok := linkedAt(c.Program, c.Offset); ok {
				one.Bias, one.First, one.N = c.Start-linked, s.first, s.n
				rows += s.n
			}
		}
		all = append(all, one)
	}
	if rows == 0 {
		return nil
	}
	return t.sampler.SetCode(p.Process, all)
}

// linkedAt returns the linked address of the beginning of a mapping of code. A mapping begins with a page. Linkers such as lld let a segment
// of code begin within the page of the file in which the segment before ends, so the last byte of the page is looked up.
func linkedAt(p *executable.Program, offset uint64) (uint64, bool) {
	const last = 4096 - 1
	if linked, ok := p.Address(offset+last, elf.PF_X); ok {
		return linked - last, true
	}
	return p.Address(offset, 0)
}

// maxPrograms is the number of files that are remembered.
const maxPrograms = 4096

// earned is the time for sections that each Prune gives back.
const earned = 100 * time.Millisecond

// Prune removes the tables of processes. It makes all tables again when they are nearly full: rows of files that no process uses
// stay until then.
func (t *Tables) Prune(gone []profiling.Process) error {
	t.spent = max(t.spent-earned, 0)
	if t.full || t.used > len(t.sampler.Rows())*3/4 || len(t.files) > maxPrograms {
		gone = slices.Collect(maps.Keys(t.looks))
		clear(t.files)
		t.used, t.full = 0, false
	}
	var errs []error
	for _, p := range gone {
		if _, known := t.looks[p]; known {
			errs = append(errs, t.sampler.Forget(p))
			delete(t.looks, p)
		}
	}
	return errors.Join(errs...)
}

// rows returns the rows of a file, which are made once.
func (t *Tables) rows(of symbol.Code) span {
	if of.Program == nil {
		return span{}
	}
	if s, known := t.files[of.Version]; known {
		return s
	}
	if _, without := t.files[of.Program]; without { // or it could not be read
		return span{}
	}
	t.files[of.Program] = span{}
	if t.spent >= maxSpent {
		t.full = true
		return span{}
	}
	began := time.Now()
	defer func() { t.spent += time.Since(began) }()
	section, address := of.Program.Section(".eh_frame", maxSection)
	rows, err := rowsOf(section, address)
	if err != nil || len(rows) == 0 {
		return span{}
	}
	to := t.sampler.Rows()[t.used:]
	if len(rows) > len(to) {
		t.full = true
		return span{}
	}
	for i, r := range rows {
		to[i] = uint64(r)
	}
	s := span{t.used, len(rows)}
	t.used += len(rows)
	delete(t.files, of.Program)
	t.files[of.Version] = s
	return s
}
