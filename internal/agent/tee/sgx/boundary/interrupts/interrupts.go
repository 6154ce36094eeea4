// SPDX-License-Identifier: Apache-2.0

// Package interrupts counts the reasons why threads leave enclaves asynchronously. Its programs run at page faults and
// interrupts, and recognise by the saved registers that an enclave was hit. It counts them by process, and the breakpoints
// on ENCLU take from it the cause of each AEX that they count. It does not count transitions, and it is attached only while a
// process has an enclave or the libraries of a runtime.
package interrupts

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/aex"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs"
)

// source is the value of the label source.
const source = "interrupts"

// tick is the unit in which the kernel side distinguishes a process from an earlier one with its ID.
const tick = 10 * time.Millisecond

// Options configure Interrupts.
type Options struct {
	Object    *bpf.Object
	Processes *process.Table
	Families  *count.Families
	// Elsewhere reports whether another mechanism counts the causes in a process, and whether that is known.
	Elsewhere func(*process.Process) (counted, known bool)
	Sys       hostfs.Root // /sys
	Log       *slog.Logger
}

// Interrupts counts the page faults and interrupts that arrive in enclaves.
type Interrupts struct {
	Options
	// Known are the causes whose events this kernel shows.
	Known aex.Causes[bool]

	ready     []bpf.Status // of the programs, as while they are attached
	missing   []bpf.Status // of the programs that this kernel does not accept
	attached  bool
	processes map[uint32]counts // as last read; those that the kernel side counts
}

// None returns interrupts that count nothing.
func None(o Options) *Interrupts { return &Interrupts{Options: o} }

// Load loads the programs. A kernel without some of the tracepoints has fewer causes.
func Load(o Options) *Interrupts {
	i := &Interrupts{Options: o, processes: map[uint32]counts{}}
	for _, e := range aex.Events {
		w := bpf.Way{Program: e.Program, Mechanism: bpf.TypedTracepoint, Target: e.Tracepoint}
		err := aex.Seen(o.Sys, e.Cause)
		if err == nil {
			err = o.Object.Ready(w)
		}
		if err != nil {
			i.missing = append(i.missing, bpf.Status{Probe: e.Program, Mechanism: bpf.NotAttached, Reason: bpf.Reason(err)})
			o.Log.Info("a cause of AEX is not counted", "cause", aex.Names[e.Cause], "reason", err)
			continue
		}
		i.ready = append(i.ready, bpf.Status{Probe: e.Program, Mechanism: bpf.TypedTracepoint, Program: e.Program})
		i.Known[e.Cause] = true
	}
	return i
}

// Status returns the states of the programs while they are attached, or would be.
func (i *Interrupts) Status() []bpf.Status {
	if !i.attached {
		return i.missing
	}
	return append(i.ready[:len(i.ready):len(i.ready)], i.missing...)
}

// Examine finds nothing, because files of runtimes have no interrupts.
func (i *Interrupts) Examine(*executable.Program, string) (func(*window.File) error, error) {
	return nil, nil
}

// Tick does nothing, because Read is called often enough.
func (i *Interrupts) Tick() error { return nil }

// Observe adds a process to the kernel side.
func (i *Interrupts) Observe(p *process.Process) error {
	if _, known := i.processes[p.TGID]; known || len(i.ready) == 0 {
		return nil
	}
	none := counts{Started: uint64(p.Started() / tick)}
	if err := i.Object.Map("interrupted").Put(p.TGID, none); err != nil {
		return fmt.Errorf("counting interrupts of process %d: %w", p.TGID, err)
	}
	i.processes[p.TGID] = none
	return i.attach()
}

// attach attaches the programs, if they are not.
func (i *Interrupts) attach() error {
	if i.attached {
		return nil
	}
	i.attached = true
	var errs []error
	for _, s := range i.ready {
		errs = append(errs, i.Object.Reattach(s.Program))
	}
	return errors.Join(errs...)
}

// Read adds the counts since the previous Read. Those of a process that may yet be counted elsewhere wait.
func (i *Interrupts) Read() error {
	var errs []error
	for tgid, last := range i.processes {
		p := i.Processes.Known(tgid)
		if p == nil {
			continue
		}
		counted, known := i.Elsewhere(p)
		if !known {
			continue
		}
		var now counts
		if err := i.Object.Map("interrupted").Lookup(tgid, &now); err != nil {
			errs = append(errs, fmt.Errorf("reading the interrupts of process %d: %w", tgid, err))
			continue
		}
		i.processes[tgid] = now
		if !counted {
			i.add(p, last, now)
		}
	}
	return errors.Join(errs...)
}

// add adds what has arrived in the enclaves of a process between two readings. A process in which nothing has arrived may
// have no enclave.
func (i *Interrupts) add(p *process.Process, last, now counts) {
	if now.N == [len(now.N)]uint64{} {
		return
	}
	var n aex.Causes[float64]
	for cause := range n {
		n[cause] = float64(now.N[cause] - last.N[cause])
	}
	i.Families.Leave(p.Workload, n, i.Known, source)
}

// Measures reports false, because an interrupt is not a transition: two of them can arrive before a thread enters again.
func (i *Interrupts) Measures(*process.Process) bool { return false }

// Forget forgets a process that has ended, after its counts were read.
func (i *Interrupts) Forget(p *process.Process) error {
	delete(i.processes, p.TGID)
	if err := i.Object.Map("interrupted").Delete(p.TGID); err != nil && !bpf.IsMissing(err) {
		return fmt.Errorf("deleting the interrupt counts of process %d: %w", p.TGID, err)
	}
	return nil
}

// Tidy detaches the programs when no process needs them.
func (i *Interrupts) Tidy() error {
	if !i.attached || len(i.processes) > 0 {
		return nil
	}
	i.attached = false
	var errs []error
	for _, s := range i.ready {
		errs = append(errs, i.Object.Detach(s.Program))
	}
	return errors.Join(errs...)
}

// Shrink reduces the map that is unused without breakpoints. It must be called before the maps are created.
func Shrink(o *bpf.Object) error { return o.Resize("left", 1) }
