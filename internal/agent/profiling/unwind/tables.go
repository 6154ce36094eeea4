// SPDX-License-Identifier: Apache-2.0

// Package unwind makes tables of the call frame information (.eh_frame) of files, by which the eBPF program walks stacks of
// programs without frame pointers. It does not walk a stack itself, read the memory of a process or evaluate expressions
// other than those of the linker's stubs and of signals: such code is walked by frame pointers.
package unwind

import (
	"debug/elf"
	"errors"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// Limits of the cost of files.
const (
	maxSection = 64 << 20         // bytes of a section .eh_frame
	maxSpent   = 10 * time.Second // for the sections of all files; 4 million rows of libraries take less than one
	// earned is the time for sections that each Prune gives back to each tenant.
	earned = 100 * time.Millisecond
	// maxPrograms is the number of files without rows that are remembered.
	maxPrograms = 4096
)

// Tables are those of all files and processes. They are not safe for concurrent use.
type Tables struct {
	sampler   *profiling.Sampler
	symbols   *symbol.Table
	room      *room
	files     map[any]*rows               // by the version of the file
	without   map[*executable.Program]int // how many rows the file needs, at least 1 if it is not known, or 0 if it has none
	processes map[profiling.Process]*process
	spent     map[tenant.Tenant]time.Duration // for sections
	full      bool
	lost      error // of tables that were removed because others needed their room
}

// process is a process with tables.
type process struct {
	looks int
	files []*rows
	set   bool // the sampler has its code
	short bool // a file of it has no tables, because there was no room or no time
}

// New returns tables without a file.
func New(sampler *profiling.Sampler, symbols *symbol.Table) *Tables {
	t := &Tables{
		sampler: sampler, symbols: symbols, files: map[any]*rows{}, without: map[*executable.Program]int{},
		processes: map[profiling.Process]*process{}, spent: map[tenant.Tenant]time.Duration{},
	}
	t.room = newRoom(len(sampler.Rows()), func(of *rows) { delete(t.files, of.version) }, t.evict)
	return t
}

// evict removes the tables of all processes that use a file.
func (t *Tables) evict(of *rows) {
	for id, is := range t.processes {
		if slices.Contains(is.files, of) {
			t.lost = errors.Join(t.lost, t.set(id, is, nil, nil))
			is.short = true
		}
	}
}

// Full reports whether a file or process had no room since the last Prune. Its stacks are found by frame pointers.
func (t *Tables) Full() bool { return t.full }

// Add sets the tables of a process, if its mappings were read since the last call.
func (t *Tables) Add(p *symbol.Process) error {
	is := t.processes[p.Process]
	if !t.sampler.Unwinds() || p.Looks() == 0 || is != nil && p.Looks() == is.looks {
		return nil
	}
	if is == nil {
		if len(t.processes) >= profiling.MaxUnwound {
			t.full = true
			return nil
		}
		is = &process{}
		t.processes[p.Process] = is
	}
	is.looks, is.short = p.Looks(), false
	if p.Mappings() > profiling.MaxMappings { // and their files must not be opened
		t.full = true
		return t.set(p.Process, is, nil, nil)
	}
	var all []profiling.Code
	var files []*rows
	owner := t.symbols.Reads.Tenant(p.PID)
	for _, c := range t.symbols.Code(p) {
		one := profiling.Code{Start: c.Start, End: c.End}
		if linked, ok := linkedAt(c.Program, c.Offset); ok {
			of := t.rows(owner, c)
			is.short = is.short || of == nil && t.without[c.Program] > 0
			if of != nil {
				one.Bias, one.First, one.N = c.Start-linked, of.first, of.n
				files = append(files, of)
			}
		}
		all = append(all, one)
	}
	return t.set(p.Process, is, all, files)
}

// set replaces the code of a process. Without rows, its stacks are found by frame pointers.
func (t *Tables) set(id profiling.Process, is *process, all []profiling.Code, files []*rows) (err error) {
	before := is.files
	is.files = files
	if len(files) > 0 {
		err = t.sampler.SetCode(id, all)
	}
	if is.set && (len(files) == 0 || err != nil) {
		err = errors.Join(err, t.sampler.Forget(id))
	}
	is.set = len(files) > 0 && err == nil
	for _, of := range before {
		t.room.leave(of)
	}
	return err
}

// linkedAt returns the linked address of the beginning of a mapping of code. A mapping begins with a page. Linkers such as lld let a segment
// of code begin within the page of the file in which the segment before ends, so the last byte of the page is looked up.
func linkedAt(p *executable.Program, offset uint64) (uint64, bool) {
	const last = 4096 - 1
	if p == nil {
		return 0, false
	}
	if linked, ok := p.Address(offset+last, elf.PF_X); ok {
		return linked - last, true
	}
	return p.Address(offset, 0)
}

// Prune removes the tables of ended processes. Those that had no room or no time are tried again at their next sample.
func (t *Tables) Prune(gone []profiling.Process) error {
	t.full = false
	for of, spent := range t.spent {
		if t.spent[of] = spent - earned; spent <= earned {
			delete(t.spent, of)
		}
	}
	for of, needs := range t.without {
		if len(t.without) > maxPrograms || needs > 0 && needs <= t.room.available(needs, tenant.Tenant{}) {
			delete(t.without, of) // it is tried again
		}
	}
	for _, is := range t.processes {
		if is.short {
			is.looks = 0
		}
	}
	errs := []error{t.lost}
	t.lost = nil
	for _, p := range gone {
		if is := t.processes[p]; is != nil {
			errs = append(errs, t.set(p, is, nil, nil))
			delete(t.processes, p)
		}
	}
	return errors.Join(errs...)
}

// rows returns the rows of a file of a tenant's process, which are made once, and notes that it uses them. They are nil if there are none.
func (t *Tables) rows(owner tenant.Tenant, of symbol.Code) *rows {
	if have := t.files[of.Version]; have != nil {
		t.room.use(have, owner)
		return have
	}
	if needs, without := t.without[of.Program]; without {
		t.full = t.full || needs > 0
		return nil
	}
	if !t.mayRead(owner) {
		t.full, t.without[of.Program] = true, 1
		return nil
	}
	began := time.Now()
	defer func() { t.spent[owner] += time.Since(began) }()
	section, address := of.Program.Section(".eh_frame", maxSection)
	made, err := rowsOf(section, address)
	if err != nil || len(made) == 0 {
		t.without[of.Program] = 0
		return nil
	}
	to := t.room.take(len(made), owner, of.Version)
	if to == nil {
		t.full, t.without[of.Program] = true, len(made)
		return nil
	}
	for i, r := range made {
		t.sampler.Rows()[to.first+i] = uint64(r)
	}
	t.files[of.Version] = to
	return to
}

// mayRead reports whether there is time for a section of a tenant: it has spent less than is left. Root outside of control groups may use
// all that is left.
func (t *Tables) mayRead(of tenant.Tenant) bool {
	left := maxSpent
	for _, spent := range t.spent {
		left -= spent
	}
	return left > 0 && (of == tenant.Tenant{} || t.spent[of] < left)
}
