// SPDX-License-Identifier: Apache-2.0

// Package process keeps the processes that are watched at the enclave boundary: the program that each runs, its workload
// and its files. It refuses to know how a mechanism counts for them.
package process

import (
	"errors"
	"iter"
	"time"

	"github.com/teescope/teescope/internal/agent/attribution"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/agent/workload"
)

// maxProcesses are watched at most.
const maxProcesses = 4096

// NameWait is how long counts of a new process may wait until it is known what they are: the ECALLs for their names, and
// the calls for whether each crosses the boundary.
const NameWait = time.Second

// Group attributes a process, whose ID is the group's number, to its workload. Mechanisms count straight into the workload.
type Group = attribution.Group[count.Counts]

// Process is one that runs a program with an enclave.
type Process struct {
	Group
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

	groups *attribution.Groups[*Process, count.Counts]
}

// NewTable has no processes yet, and at most so many named workloads.
func NewTable(from host.Processes, workloads int, now func() time.Time) *Table {
	none := attribution.Hooks[*Process, count.Counts]{}
	return &Table{Host: from, Now: now, groups: attribution.New(nil, workloads, none)}
}

// Workloads are those of all processes, with what they have counted.
func (t *Table) Workloads() *count.Registry { return t.groups.Registry }

// Len is how many processes there are.
func (t *Table) Len() int { return t.groups.Len() }

// Known returns a process that has been looked at, nil if it has not.
func (t *Table) Known(tgid uint32) *Process { return t.groups.Get(tgid) }

// All are the processes that have been looked at.
func (t *Table) All() iter.Seq[*Process] { return t.groups.All() }

// Other is the workload of processes that ended before they could be looked at.
func (t *Table) Other() *count.Workload { return t.groups.Registry.Other() }

// Owner is the workload of a process, which may be nil.
func (t *Table) Owner(p *Process) *count.Workload {
	if p == nil {
		return t.Other()
	}
	return p.Workload
}

// Get returns a process. A new one is looked at now. It returns nil for one that has ended.
func (t *Table) Get(tgid uint32) *Process {
	if p := t.groups.Get(tgid); p != nil {
		return p
	}
	program, ok := t.Host.Program(tgid)
	if !ok || t.groups.Len() >= maxProcesses {
		return nil
	}
	return t.Add(tgid, t.Host.Identify(tgid), Process{program: program})
}

// Add adds a process to the workload of that identity.
func (t *Table) Add(tgid uint32, id workload.Identity, p Process) *Process {
	now := t.Now()
	p.Group, p.Since, p.Files = t.groups.Join(tgid, id, now), now, map[*window.File]bool{}
	t.groups.Put(&p)
	return &p
}

// Runs tells whether there is a process, known or not.
func (t *Table) Runs(tgid uint32) bool {
	_, ok := t.Host.Program(tgid)
	return ok
}

// MarkEnded finds out which processes have ended or run another program. One whose calls wait for the end of a window
// has not ended before that.
func (t *Table) MarkEnded() {
	for p := range t.All() {
		program, ok := t.Host.Program(p.TGID)
		p.Ended = (!ok || program != p.program) && !p.inWindow()
	}
}

// Promote gives processes of which the workload had no name of its own that name, where there is one by now. What they
// have counted stays where it was counted.
func (t *Table) Promote() { t.groups.Promote(t.Now()) }

// RemoveEnded forgets the processes that have ended, after forget has been called with each.
func (t *Table) RemoveEnded(forget func(*Process) error) error {
	var errs []error
	for p := range t.All() {
		if p.Ended {
			errs = append(errs, forget(p))
			t.groups.Leave(p, t.Now())
		}
	}
	return errors.Join(errs...)
}
