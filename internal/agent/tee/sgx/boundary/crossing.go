// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/workload"
)

// doorway is the instruction by which programs enter enclaves of the in-tree driver, whatever their runtime is, and
// where an AEX ends: ENCLU in the kernel's vDSO. The threads of processes that --watch names have a breakpoint on it.
// It is treated as a file that is probed, with windows and a budget like others.
type doorway struct {
	address func(tgid uint32) (uint64, error) // nil where there is none to be watched
	file    *probedFile                       // nil while no process is
	trees   map[uint32]*points                // by numbers of their own
	last    uint32                            // of those numbers
	cost    uint8                             // of a hit
	seen    map[uint32]crossings              // what was read of the kernel's counters
}

// points are the breakpoints of the threads that a process had, which all threads and processes have that descend
// from them.
type points struct {
	set   []*bpf.Breakpoint
	owner *workload.Workload[counts]
	users int // processes that are known
}

// throughVDSO is the runtime of whoever enters there.
var throughVDSO = &runtime{name: "vdso"}

// maxPoints threads a process may have when it is first met.
const maxPoints = 512

// wayIn tells where a process would execute that instruction; nil where this kernel has none.
func (b *Backend) wayIn() func(tgid uint32) (uint64, error) {
	if b.opts.enclu != nil {
		return b.opts.enclu
	}
	offset, err := encluOfVDSO()
	if err != nil {
		b.opts.Log.Debug("AEX are not counted but by Gramine", "reason", err)
		return nil
	}
	return func(tgid uint32) (uint64, error) {
		start, _, err := vdso(b.host.of(tgid))
		return start + offset, err
	}
}

func (p *points) each(do func(*bpf.Breakpoint) error) error {
	errs := make([]error, 0, len(p.set))
	for _, point := range p.set {
		errs = append(errs, do(point))
	}
	return errors.Join(errs...)
}

func (p *points) turn(on bool) error {
	return p.each(func(b *bpf.Breakpoint) error { return b.Switch(on) })
}

func (p *points) Close() error { return p.each((*bpf.Breakpoint).Close) }

// open switches all breakpoints on, until the result is closed.
func (d *doorway) open() (io.Closer, error) {
	err := d.turn(true)
	return closing(func() error { return d.turn(false) }), err
}

func (d *doorway) turn(on bool) error {
	var errs []error
	for _, tree := range d.trees {
		errs = append(errs, tree.turn(on))
	}
	return errors.Join(errs...)
}

type closing func() error

func (f closing) Close() error { return f() }

// arm has the entries of a watched process counted, if it enters enclaves through the vDSO. Gramine does not, and
// counts by itself.
func (b *Backend) arm(tgid uint32, p *process) error {
	if b.door.address == nil || !p.watched || p.points != nil || p.refused || p.layout != nil {
		return nil
	}
	if b.door.file == nil {
		if err := b.findDoor(); err != nil {
			return err
		}
	}
	file := b.door.file
	p.files[file], p.refused = true, len(file.sites) == 0
	if p.refused {
		return nil
	}
	tree, err := b.inherited(tgid)
	if tree == nil && err == nil {
		tree, err = b.setPoints(tgid, p.owner)
	}
	if _, runs := b.host.program(tgid); err != nil && runs {
		p.refused, file.reason = true, bpf.Reason(err)
		if len(b.door.trees) == 0 {
			file.sites = nil
		}
		b.opts.Log.Info("AEX are not counted", "pid", tgid, "reason", err)
	}
	if err != nil {
		return nil
	}
	tree.users++
	p.points = tree
	return nil
}

// findDoor begins to probe the vDSO.
func (b *Backend) findDoor() error {
	file, err := b.slot(fileID{}, "vdso", throughVDSO)
	if err != nil {
		return err
	}
	b.door.file, b.door.trees, b.door.seen = file, map[uint32]*points{}, map[uint32]crossings{}
	b.lastSite++
	told := cookie(file.index, rolePlain, b.door.cost, b.lastSite)
	file.sites = []bpf.Site{{Cookie: told}}
	if err := b.kernel.object.Map("breakpoint").Put(uint32(0), told); err != nil {
		return fmt.Errorf("telling which file the vDSO is: %w", err)
	}
	return b.attach(file)
}

// inherited returns the breakpoints that a process has from the one that it descends from.
func (b *Backend) inherited(tgid uint32) (*points, error) {
	n, err := b.kernel.crossingsOf(tgid)
	if err != nil || n == nil || n.Left != 0 {
		return nil, err
	}
	return b.door.trees[n.Tree], nil
}

// setPoints sets a breakpoint in each thread of a process. Threads that begin meanwhile may have it or not: then it
// is done again.
func (b *Backend) setPoints(tgid uint32, owner *workload.Workload[counts]) (*points, error) {
	address, err := b.door.address(tgid)
	if err != nil {
		return nil, err
	}
	b.door.last++
	const attempts = 10
	for range attempts {
		if err := b.kernel.object.Map("crossed").Put(tgid, crossings{Tree: b.door.last}); err != nil {
			return nil, fmt.Errorf("counting entries of process %d: %w", tgid, err)
		}
		delete(b.door.seen, tgid)
		tree, err := b.setOnce(tgid, address)
		if err != nil {
			return nil, err
		}
		n, err := b.kernel.crossingsOf(tgid)
		if err == nil && n != nil && n.Born == 0 {
			if b.door.file.attached != nil {
				err = tree.turn(true)
			}
			tree.owner, b.door.trees[b.door.last] = owner, tree
			return tree, err
		}
		if err := errors.Join(err, tree.Close()); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("process %d makes threads faster than breakpoints can be set", tgid)
}

func (b *Backend) setOnce(tgid uint32, address uint64) (*points, error) {
	tids, err := b.host.of(tgid).Threads()
	if err != nil {
		return nil, err
	}
	if len(tids) > maxPoints {
		return nil, fmt.Errorf("%d threads are too many to set breakpoints in: at most %d", len(tids), maxPoints)
	}
	tree := &points{}
	for _, tid := range tids {
		point, err := b.kernel.breakpoints.Set(tid, address)
		if errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return nil, errors.Join(err, tree.Close())
		}
		tree.set = append(tree.set, point)
	}
	return tree, nil
}

// settleCrossings takes what was counted since the last time. An AEX is known by the ERESUME that ends it: one out of
// which a thread does not come back, because it is killed, is none. Each EENTER is taken for an EEXIT too.
func (b *Backend) settleCrossings(closing *probedFile, weight float64) error {
	d := &b.door
	if d.file == nil {
		return nil
	}
	w, due := d.file.weight(closing, weight)
	if !due {
		return nil
	}
	var ended []uint32
	err := b.kernel.eachCrossings(func(tgid uint32, n crossings) {
		p, last := b.processes[tgid], d.seen[tgid]
		if _, runs := b.host.program(tgid); p == nil && !runs {
			ended = append(ended, tgid)
		} else if p == nil && n.Enters > 0 {
			p = b.process(tgid)
		}
		owner := b.registry.Other()
		if tree := d.trees[n.Tree]; tree != nil {
			owner = tree.owner // of who has begun it
		}
		if p != nil {
			owner, p.byVDSO = p.owner, p.byVDSO || n.Enters > 0
			if n.Left != 0 {
				p.leave() // until breakpoints are set anew
			}
		}
		source := "vdso_breakpoint"
		if !d.file.sampler.exact {
			source += "_sampled"
		}
		for kind, of := range map[string]uint64{
			"eenter": n.Enters - last.Enters, "eexit": n.Enters - last.Enters, "aex": n.Resumes - last.Resumes,
		} {
			if n.Enters > 0 {
				b.add(owner, float64(of)*w, b.families.transitions, kind, source)
			}
		}
		d.seen[tgid] = n
	})
	for _, tgid := range ended {
		err = errors.Join(err, b.forgetCrossings(tgid))
	}
	return err
}

// leave gives up breakpoints of a process.
func (p *process) leave() {
	if p.points != nil {
		p.points.users--
		p.points = nil
	}
}

// undecided tells whether it is still to be found out if a process that has begun to call enters enclaves through the
// vDSO: then its calls are no crossings, for those are counted there.
func (b *Backend) undecided(p *process) bool {
	if p.points == nil || p.byVDSO || p.last {
		return false
	}
	if p.asked.IsZero() {
		p.asked = b.now()
	}
	return b.now().Sub(p.asked) < nameWait
}

// decide counts the crossings that were held back, of processes that do not enter through the vDSO.
func (b *Backend) decide() {
	for _, p := range b.processes {
		if len(p.held) == 0 || b.undecided(p) {
			continue
		}
		for source, n := range p.held {
			if !p.byVDSO {
				b.cross(p.owner, n, source)
			}
		}
		clear(p.held)
	}
}

func (b *Backend) forgetCrossings(tgid uint32) error {
	delete(b.door.seen, tgid)
	return b.kernel.remove("crossed", tgid)
}

// disarm removes the breakpoints that no process has any more; closes them all where the vDSO is probed no longer.
func (b *Backend) disarm(all bool) error {
	var errs []error
	for root, tree := range b.door.trees {
		if tree.users == 0 || all {
			errs = append(errs, tree.Close())
			delete(b.door.trees, root)
		}
	}
	return errors.Join(errs...)
}
