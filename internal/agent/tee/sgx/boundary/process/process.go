// SPDX-License-Identifier: Apache-2.0

// Package process keeps the processes that are watched at the enclave boundary, with the program that each runs, its
// workload and its files. It does not depend on how a mechanism counts.
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
	Unopened bool                  // not all its files were inspected

	program host.Program
	owner   tenant.Tenant
	placed  bool // it has a place of its owner
}

// Timed reports whether calls of the process are to be timed.
func (p *Process) Timed() bool { return p.Watched || len(p.Demanded) > 0 }

// Started returns when the process started, since the machine did. It is a multiple of 10 ms (/proc/PID/stat).
func (p *Process) Started() time.Duration { return p.program.Start }

// Owner returns the owner of the process when it was found.
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
	absent map[uint32]absence // what this pass has found of processes that are not known
}

// NewTable returns a table without processes. It limits the number of named workloads.
func NewTable(from host.Processes, workloads int, now func() time.Time) *Table {
	none := attribution.Hooks[*Process, count.Counts]{}
	return &Table{Host: from, Now: now, Places: tenant.NewQuota(maxProcesses), groups: attribution.New(nil, workloads, none), absent: map[uint32]absence{}}
}

// Workloads returns the workloads of all processes, with their counts.
func (t *Table) Workloads() *count.Registry { return t.groups.Registry }

// Len returns the number of processes.
func (t *Table) Len() int { return t.groups.Len() }

// Known returns a process that has been inspected, or nil.
func (t *Table) Known(tgid uint32) *Process { return t.groups.Get(tgid) }

// All returns the processes that have been inspected.
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

// absence is the reason why a process is not known.
type absence uint8

const (
	ended absence = iota
	running
	waits // for reads of it
)

// newcomer has the data of a new process.
type newcomer struct {
	program host.Program
	owner   tenant.Tenant
	id      workload.Identity
}

// readNew reads a process. It fails if the process runs another program meanwhile.
func readNew(h host.Processes, tgid uint32) (newcomer, error) {
	program, err := h.Program(tgid)
	if err != nil {
		return newcomer{}, err
	}
	n := newcomer{program: program, owner: h.Reads.Tenant(int(tgid))}
	if n.id, err = h.Identify(tgid); err != nil {
		return newcomer{}, err
	}
	if now, err := h.Program(tgid); err == nil && now != program { // the data may be of either
		n.program = now
		n.id, err = h.Identify(tgid)
		return n, err
	}
	return n, nil
}

// BeginPass begins a pass over the counters of processes. In a pass each process that is not known is looked up once, however many
// counters it has.
func (t *Table) BeginPass() { clear(t.absent) }

// Get returns a process, and inspects it if it is new. It returns nil if the process has ended, does not answer or gets no place,
// and while it is read (Waits). A process that has ended since it was read is added, so that its counts have their workload.
func (t *Table) Get(tgid uint32) *Process {
	if p := t.groups.Get(tgid); p != nil {
		return p
	}
	if _, looked := t.absent[tgid]; looked {
		return nil
	}
	from := t.Host
	is, err := host.Later(from, host.Key{TGID: tgid, What: "new"}, func() (newcomer, error) { return readNew(from, tgid) })
	switch {
	case host.IsLater(err):
		t.absent[tgid] = waits
		return nil
	case err != nil:
		t.absent[tgid] = ended
		if t.Host.Runs(tgid) {
			t.absent[tgid] = running
		}
		return nil
	case t.Places.Take(is.owner) != nil:
		t.absent[tgid] = running
		return nil
	}
	return t.Add(tgid, is.id, Process{program: is.program, owner: is.owner, placed: true})
}

// Waits reports whether a process that is not known is being read. Its counters must stay until that has ended.
func (t *Table) Waits(tgid uint32) bool { return t.Known(tgid) == nil && t.absent[tgid] == waits }

// Waiting reports whether any process of this pass is being read.
func (t *Table) Waiting() bool {
	for _, why := range t.absent {
		if why == waits {
			return true
		}
	}
	return false
}

// Later is [host.Later] for a process that is known. The result of a read is dropped when the process runs another program.
func Later[T any](t *Table, p *Process, what any, read func() (T, error)) (T, error) {
	return host.Later(t.Host, host.Key{TGID: p.TGID, Program: p.program, What: what}, read)
}

// Add adds a process to the workload of that identity.
func (t *Table) Add(tgid uint32, id workload.Identity, p Process) *Process {
	now := t.Now()
	p.Group, p.Since, p.Files = t.groups.Join(tgid, id, now), now, map[*window.File]bool{}
	t.groups.Put(&p)
	return &p
}

// Ready is [host.Ready] for a process that is known.
func Ready[T any](t *Table, p *Process, what any, read func() (T, error)) bool {
	return host.Ready(t.Host, host.Key{TGID: p.TGID, Program: p.program, What: what}, read)
}

// Runs reports whether a process exists, known or not. It reads no file that the process can block.
func (t *Table) Runs(tgid uint32) bool {
	if why, looked := t.absent[tgid]; looked && why != waits {
		return why == running
	}
	runs := t.Host.Runs(tgid)
	if t.Known(tgid) == nil && t.absent[tgid] != waits {
		t.absent[tgid] = ended
		if runs {
			t.absent[tgid] = running
		}
	}
	return runs
}

// programOf is the key of the read of a known process's program.
func programOf(tgid uint32) host.Key { return host.Key{TGID: tgid, What: "program"} }

// Check requests reads of the programs that the known processes run now. MarkEnded takes the results.
func (t *Table) Check() {
	from := t.Host
	if from.Ahead == nil {
		return
	}
	for p := range t.All() {
		tgid := p.TGID
		from.Ahead.Ask(programOf(tgid), func() (any, error) { return from.Program(tgid) })
	}
}

// MarkEnded marks the processes that have ended or run another program. A process whose calls wait for the end of
// a window is marked only after that.
func (t *Table) MarkEnded() {
	for p := range t.All() {
		other, answered := t.runsOther(p)
		p.Ended = (answered && other || !t.Host.Runs(p.TGID)) && !p.inWindow()
	}
}

// runsOther reports whether a process has ended or runs another program, and whether that is known.
func (t *Table) runsOther(p *Process) (other, known bool) {
	var value any
	var err error
	if t.Host.Ahead == nil {
		value, err = t.Host.Program(p.TGID)
	} else if value, err, known = t.Host.Ahead.Take(programOf(p.TGID)); !known {
		return false, false
	}
	program, _ := value.(host.Program)
	if err != nil {
		return errors.Is(err, host.ErrEnded), true
	}
	if program.Same(p.program) {
		p.program = program // it may have executed this program again, and its mappings are others then
		return false, true
	}
	return true, true
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
