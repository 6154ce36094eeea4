// SPDX-License-Identifier: Apache-2.0

// Package process keeps the processes that are watched at the enclave boundary: the program that each runs, its workload
// and its files. It refuses to know how a mechanism counts for them.
package process

import (
	"errors"
	"time"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
)

// maxProcesses are watched at most.
const maxProcesses = 4096

// NameWait is how long counts of a new process may wait until it is known what they are: the ECALLs for their names, and
// the calls for whether each crosses the boundary.
const NameWait = time.Second

// Process is one that runs a program with an enclave.
type Process struct {
	TGID    uint32
	Owner   *count.Workload
	Runtime string // as the detector calls it
	Enclave bool
	Watched bool // a rule of --watch names it: its calls are timed and its AEXs counted
	Ended   bool // what it has counted until now is all
	Since   time.Time
	Files   map[*window.File]bool // that have probes

	program host.Program
}

// inWindow tells whether calls of the process wait for the end of a window.
func (p *Process) inWindow() bool {
	for file := range p.Files {
		if file.InWindow() {
			return true
		}
	}
	return false
}

// Table has all processes.
type Table struct {
	Host host.Processes
	Now  func() time.Time

	registry *count.Registry
	byTGID   map[uint32]*Process
}

// NewTable has no processes yet.
func NewTable(from host.Processes, r *count.Registry, now func() time.Time) *Table {
	return &Table{Host: from, Now: now, registry: r, byTGID: map[uint32]*Process{}}
}

// Len is how many processes there are.
func (t *Table) Len() int { return len(t.byTGID) }

// Known returns a process that has been looked at, nil if it has not.
func (t *Table) Known(tgid uint32) *Process { return t.byTGID[tgid] }

// All are the processes that have been looked at.
func (t *Table) All() map[uint32]*Process { return t.byTGID }

// Other is the workload of processes that ended before they could be looked at.
func (t *Table) Other() *count.Workload { return t.registry.Other() }

// Owner is the workload of a process, which may be nil.
func (t *Table) Owner(p *Process) *count.Workload {
	if p == nil {
		return t.Other()
	}
	return p.Owner
}

// Get returns a process. A new one is looked at now. It returns nil for one that has ended.
func (t *Table) Get(tgid uint32) *Process {
	if p := t.byTGID[tgid]; p != nil {
		return p
	}
	program, ok := t.Host.Program(tgid)
	if !ok || len(t.byTGID) >= maxProcesses {
		return nil
	}
	now := t.Now()
	p := &Process{
		TGID: tgid, Owner: t.registry.Join(t.Host.Identify(tgid), now), Since: now,
		Files: map[*window.File]bool{}, program: program,
	}
	t.byTGID[tgid] = p
	return p
}

// Runs tells whether there is a process, known or not.
func (t *Table) Runs(tgid uint32) bool {
	_, ok := t.Host.Program(tgid)
	return ok
}

// MarkEnded finds out which processes have ended or run another program. One whose calls wait for the end of a window
// has not ended before that.
func (t *Table) MarkEnded() {
	for tgid, p := range t.byTGID {
		program, ok := t.Host.Program(tgid)
		p.Ended = (!ok || program != p.program) && !p.inWindow()
	}
}

// RemoveEnded forgets the processes that have ended, after forget has been called with each.
func (t *Table) RemoveEnded(forget func(*Process) error) error {
	var errs []error
	for tgid, p := range t.byTGID {
		if p.Ended {
			errs = append(errs, forget(p))
			t.registry.Leave(p.Owner, t.Now())
			delete(t.byTGID, tgid)
		}
	}
	return errors.Join(errs...)
}
