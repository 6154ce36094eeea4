// SPDX-License-Identifier: Apache-2.0

// Package breakpoint counts entries of enclaves and AEXs where all runtimes of the in-tree driver come by: at ENCLU in the
// kernel's vDSO, on which it sets a debug-register breakpoint in the threads of watched processes. It refuses to set one
// where Gramine counts, because that does not enter there, and in processes that no rule names.
package breakpoint

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
)

// Options are what Breakpoints are made of.
type Options struct {
	Object    *bpf.Object
	Processes *process.Table
	Files     *window.Files
	Families  *count.Families
	// Address is where a process executes the instruction.
	Address func(tgid uint32) (uint64, error)
	// Elsewhere tells whether the entries of a process are counted by its runtime.
	Elsewhere func(*process.Process) bool
	Log       *slog.Logger
}

// Breakpoints are those on the ENCLU of the vDSO. The vDSO is treated as a file with probes, with windows and a budget
// like others.
type Breakpoints struct {
	Options
	points    *bpf.Breakpoints
	cost      uint8        // of a hit
	file      *window.File // nil while no process is watched
	trees     map[uint32]*tree
	lastTree  uint32
	seen      map[uint32]counts // what was read of the kernel side
	processes map[uint32]*state
}

// state is what is known of a watched process.
type state struct {
	tree    *tree // nil where it has no breakpoints
	refused bool  // and there will be none
	enters  bool  // it enters enclaves through the vDSO: its crossings are known from that alone
	asked   time.Time
}

// runtimeLabel is the label runtime of the vDSO.
const runtimeLabel = "vdso"

// InVDSO tells where a process executes the ENCLU of the vDSO. It returns ErrNoVDSO where this kernel has none.
func InVDSO(of host.Processes) (func(tgid uint32) (uint64, error), error) {
	offset, err := encluOfVDSO()
	if err != nil {
		return nil, err
	}
	return func(tgid uint32) (uint64, error) {
		start, _, err := host.VDSO(of.Of(tgid))
		return start + offset, err
	}, nil
}

// Load loads what counts at breakpoints, and what follows the processes that inherit them.
func Load(o Options) (*Breakpoints, error) {
	b := &Breakpoints{Options: o, processes: map[uint32]*state{}}
	var err error
	if b.points, err = bpf.LoadBreakpoints(o.Object, "enclu"); err != nil {
		return nil, err
	}
	for program, tracepoint := range map[string]string{"born": "sched_process_fork", "executed": "sched_process_exec"} {
		_, err := o.Object.Attach(bpf.Probe{Name: program, Ways: []bpf.Way{
			{Program: program, Mechanism: bpf.TypedTracepoint, Target: tracepoint},
		}})
		if err != nil {
			return nil, err
		}
	}
	if b.cost, err = measure(b.points); err != nil {
		o.Log.Info("the cost of breakpoints is assumed", "reason", err)
	}
	return b, nil
}

// Probe does nothing: files of runtimes have no breakpoint.
func (b *Breakpoints) Probe(*window.File) error { return nil }

// Tick does nothing: Read is often enough.
func (b *Breakpoints) Tick() error { return nil }

// Observe sets breakpoints in a watched process, once.
func (b *Breakpoints) Observe(p *process.Process) error {
	s := b.state(p.TGID)
	if !p.Watched || s.tree != nil || s.refused || b.Elsewhere(p) {
		return nil
	}
	if b.file == nil {
		if err := b.begin(); err != nil {
			return err
		}
	}
	file := b.file
	p.Files[file], s.refused = true, len(file.Sites) == 0
	if s.refused {
		return nil
	}
	t, err := b.inherited(p.TGID)
	if t == nil && err == nil {
		t, err = b.set(p.TGID, p.Workload)
	}
	if err != nil {
		if b.Processes.Runs(p.TGID) {
			b.refuse(s, p.TGID, err)
		}
		return nil
	}
	t.users++
	s.tree = t
	return nil
}

// refuse gives a process up, and the vDSO too when no other process has breakpoints.
func (b *Breakpoints) refuse(s *state, tgid uint32, reason error) {
	s.refused, b.file.Reason = true, bpf.Reason(reason)
	if len(b.trees) == 0 {
		b.file.Sites = nil
	}
	b.Log.Info("AEX are not counted", "pid", tgid, "reason", reason)
}

func (b *Breakpoints) state(tgid uint32) *state {
	s := b.processes[tgid]
	if s == nil {
		s = &state{}
		b.processes[tgid] = s
	}
	return s
}

// begin begins to probe the vDSO.
func (b *Breakpoints) begin() error {
	file, err := b.Files.Add(host.FileID{}, "vdso", runtimeLabel)
	if err != nil {
		return err
	}
	b.file, b.trees, b.seen = file, map[uint32]*tree{}, map[uint32]counts{}
	cookie := window.Cookie(file.Index, 0, b.cost, 0)
	file.Sites, file.Probes = []bpf.Site{{Cookie: cookie}}, probes{b}
	if err := b.Object.Map("breakpoint").Put(uint32(0), cookie); err != nil {
		return fmt.Errorf("telling which file the vDSO is: %w", err)
	}
	return b.Files.Attach(file)
}

// probes are the breakpoints of all processes, as those of a file.
type probes struct{ *Breakpoints }

// Attach implements window.Probes.
func (b probes) Attach() error { return b.enable(true) }

// Detach implements window.Probes.
func (b probes) Detach() error { return b.enable(false) }

// Count implements window.Probes.
func (b probes) Count(weight float64) error { return b.read(b.file, weight) }

// Close implements window.Probes.
func (b probes) Close() error {
	err := b.remove(func(*tree) bool { return true })
	b.file = nil
	return err
}

func (b *Breakpoints) enable(on bool) error {
	var errs []error
	for _, t := range b.trees {
		errs = append(errs, t.enable(on))
	}
	return errors.Join(errs...)
}

// Read adds what was counted since the last time, if every entry is counted now.
func (b *Breakpoints) Read() error { return b.read(nil, 1) }

// read takes an AEX for the ERESUME that ends it: one out of which a thread does not come back, because it is killed, is
// not counted. Each EENTER is taken for an EEXIT too.
func (b *Breakpoints) read(ending *window.File, weight float64) error {
	if b.file == nil {
		return nil
	}
	weight, now := b.file.Weight(ending, weight)
	if !now {
		return nil
	}
	var tgid uint32
	var n counts
	var ended []uint32
	entries := b.Object.Map("crossed").Iterate()
	for entries.Next(&tgid, &n) {
		p := b.Processes.Known(tgid)
		if p == nil && !b.Processes.Runs(tgid) {
			ended = append(ended, tgid)
		} else if p == nil && n.Enters > 0 {
			p = b.Processes.Get(tgid)
		}
		b.add(p, tgid, n, weight)
	}
	var err error
	if err = entries.Err(); err != nil {
		err = fmt.Errorf("reading how often enclaves were entered: %w", err)
	}
	for _, tgid := range ended {
		err = errors.Join(err, b.forget(tgid))
	}
	return err
}

// add counts what a process, nil where it was never looked at, has done since the last time.
func (b *Breakpoints) add(p *process.Process, tgid uint32, n counts, weight float64) {
	last := b.seen[tgid]
	b.seen[tgid] = n
	owner := b.Processes.Other()
	if t := b.trees[n.Tree]; t != nil {
		owner = t.owner // that of the process which has begun it
	}
	if p != nil {
		owner = p.Workload
		s := b.state(tgid)
		s.enters = s.enters || n.Enters > 0
		if n.Left != 0 {
			s.leave() // until breakpoints are set anew
		}
	}
	if n.Enters == 0 {
		return
	}
	source := b.file.Source("vdso_breakpoint")
	b.Families.Cross(owner, float64(n.Enters-last.Enters)*weight, source)
	count.Add(owner, float64(n.Resumes-last.Resumes)*weight, b.Families.Transitions, "aex", source)
}

// leave gives up the breakpoints of a process.
func (s *state) leave() {
	if s.tree != nil {
		s.tree.users--
		s.tree = nil
	}
}

// Measures tells whether a process enters enclaves through the vDSO.
func (b *Breakpoints) Measures(p *process.Process) bool {
	s := b.processes[p.TGID]
	return s != nil && s.enters && b.file != nil && p.Files[b.file] && len(b.file.Sites) > 0
}

// Counts tells whether the crossings of a process are counted here, and whether that is known yet: it has breakpoints, and
// has not entered an enclave for too short a time.
func (b *Breakpoints) Counts(p *process.Process) (counts, known bool) {
	s := b.processes[p.TGID]
	if s == nil {
		return false, true
	}
	if s.tree == nil || s.enters || p.Ended {
		return s.enters, true
	}
	if s.asked.IsZero() {
		s.asked = b.Processes.Now()
	}
	return false, b.Processes.Now().Sub(s.asked) >= process.NameWait
}

// Forget forgets a process that has ended. What it counted has been read.
func (b *Breakpoints) Forget(p *process.Process) error {
	b.state(p.TGID).leave()
	delete(b.processes, p.TGID)
	return b.forget(p.TGID)
}

func (b *Breakpoints) forget(tgid uint32) error {
	delete(b.seen, tgid)
	if err := b.Object.Map("crossed").Delete(tgid); err != nil && !bpf.IsMissing(err) {
		return fmt.Errorf("forgetting how often process %d has entered enclaves: %w", tgid, err)
	}
	return nil
}

// Tidy removes the breakpoints that no process has any more.
func (b *Breakpoints) Tidy() error { return b.remove(func(t *tree) bool { return t.users == 0 }) }

func (b *Breakpoints) remove(which func(*tree) bool) error {
	var errs []error
	for number, t := range b.trees {
		if which(t) {
			errs = append(errs, t.Close())
			delete(b.trees, number)
		}
	}
	return errors.Join(errs...)
}

// Shrink makes the map small that is not used without breakpoints. It must run before the maps are created.
func Shrink(o *bpf.Object) error { return o.Resize("crossed", 1) }
