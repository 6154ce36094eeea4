// SPDX-License-Identifier: Apache-2.0

// Package process keeps the processes that are watched at the enclave boundary, with the program that each runs,
// its workload and its files. It refuses to know how a mechanism counts.
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
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// maxProcesses is the limit of watched processes.
const maxProcesses = 4096

// NameWait is how long the ECALLs of a new process may wait for their names.
const NameWait = time.Second

// Group attributes a process to its workload. The number of the group is the process ID. Mechanisms count
// directly into the workload.
type Group = attribution.Group[count.Counts]

// Process is a process that runs a program with an enclave.
type Process struct {
	Group
	Runtime teelabel.Runtime // as the detector names it
	Enclave bool
	Watched bool // a rule of --watch names it: its calls are timed and its AEXs counted
	// Demanded are rules in force for a limited time that name it: its calls are timed.
	Demanded []string
	Ended    bool // its counts are final
	Since    time.Time
	Files    map[*window.File]bool // files with probes
	Unopened bool                  // not all its files were looked at

	program host.Program
	owner   tenant.Tenant
	placed  bool // it has a place of its owner
}

// Timed reports whether calls of the process are to be timed.
func (p *Process) Timed() bool { return p.Watched || len(p.Demanded) > 0 }

// Started returns when the process started, since the machine did. It is a multiple of 10 ms (/proc/PID/stat).
func (p *Process) Started() time.Duration { return p.program.Start }

// Owner returns to whom the process belonged when it was found.
func (p *Process) Owner() tenant.Tenant { return p.owner }

// inWindow reports whether calls of the process wait for the end of a window.
func (p *Process) inWindow() bool {
	for file := range p.Files {
		if file.InWindow() {
			return true
		}
	}
	return false
}

// Table contains all processes.
type Table struct {
	Host host.Processes
	Now  func() time.Time

	Places *tenant.Quota
	groups *attribution.Groups[*Process, count.Counts]
	absent map[uint32]bool // what this pass has found of processes that are not known: whether they run
}

// NewTable returns a table without processes. It limits the number of named workloads.
func NewTable(from host.Processes, workloads int, now func() time.Time) *Table {
	none := attribution.Hooks[*Process, count.Counts]{}
	return &Table{Host: from, Now: now, Places: tenant.NewQuota(maxProcesses), groups: attribution.New(nil, workloads, none), absent: map[uint32]bool{}}
}

// Workloads returns the workloads of all processes, with their counts.
func (t *Table) Workloads() *count.Registry { return t.groups.Registry }

// Len returns the number of processes.
func (t *Table) Len() int { return t.groups.Len() }

// Known returns a process that has been looked at, or nil.
func (t *Table) Known(tgid uint32) *Process { return t.groups.Get(tgid) }

// All returns the processes that have been looked at.
func (t *Table) All() iter.Seq[*Process] { return t.groups.All() }

// Other returns the workload of processes that ended before the first look.
func (t *Table) Other() *count.Workload { return t.groups.Registry.Other() }

// Owner returns the workload of a process, which may be nil.
func (t *Table) Owner(p *Process) *count.Workload {
	if p == nil {
		return t.Other()
	}
	return p.Workload
}

// BeginPass begins a pass over the counters of processes. In a pass each process that is not known is looked up once, however many
// counters it has.
func (t *Table) BeginPass() { clear(t.absent) }

// Get returns a process, and looks at it if it is new. It returns nil if the process has ended, does not answer or gets no place.
func (t *Table) Get(tgid uint32) *Process {
	if p := t.groups.Get(tgid); p != nil {
		return p
	}
	if _, looked := t.absent[tgid]; looked {
		return nil
	}
	program, err := t.Host.Program(tgid)
	if err != nil {
		t.absent[tgid] = t.Host.Runs(tgid)
		return nil
	}
	owner := t.Host.Reads.Tenant(int(tgid))
	if t.Places.Take(owner) != nil {
		t.absent[tgid] = true
		return nil
	}
	return t.Add(tgid, t.Host.Identify(tgid), Process{program: program, owner: owner, placed: true})
}

// Add adds a process to the workload of that identity.
func (t *Table) Add(tgid uint32, id workload.Identity, p Process) *Process {
	now := t.Now()
	p.Group, p.Since, p.Files = t.groups.Join(tgid, id, now), now, map[*window.File]bool{}
	t.groups.Put(&p)
	return &p
}

// Runs reports whether a process exists, known or not. It reads no file that the process can block.
func (t *Table) Runs(tgid uint32) bool {
	if runs, looked := t.absent[tgid]; looked {
		return runs
	}
	runs := t.Host.Runs(tgid)
	if t.Known(tgid) == nil {
		t.absent[tgid] = runs
	}
	return runs
}

// MarkEnded marks the processes that have ended or run another program. A process whose calls wait for the end of
// a window is marked only after that.
func (t *Table) MarkEnded() {
	for p := range t.All() {
		program, err := t.Host.Program(p.TGID)
		other := err == nil && !program.Same(p.program)
		p.Ended = (other || errors.Is(err, host.ErrEnded)) && !p.inWindow()
	}
}

// Promote names the workloads that had no name of their own, if a name is free now. Earlier counts stay where
// they were added.
func (t *Table) Promote() { t.groups.Promote(t.Now()) }

// RemoveEnded removes the processes that have ended, after it has called forget with each.
func (t *Table) RemoveEnded(forget func(*Process) error) error {
	var errs []error
	for p := range t.All() {
		if p.Ended {
			errs = append(errs, forget(p))
			t.groups.Leave(p, t.Now())
			if p.placed {
				t.Places.Give(p.owner)
			}
		}
	}
	t.groups.Looked(t.Now())
	return errors.Join(errs...)
}
