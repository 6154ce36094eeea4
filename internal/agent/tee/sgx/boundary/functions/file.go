// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// maxSites is the limit of probed sites in all files together.
const maxSites = 4096

// file is a file whose functions are probed in all processes that map it.
type file struct {
	*window.File
	all     *Functions
	runtime *runtime
	calls   closers // probes of functions; empty while detached
	returns closers
	worker  executable.Function // from which threads outside make OCALLs; without a size if there is none
}

// site is the address of a called function in a file.
type site struct {
	spot
	runtime *runtime
	file    *file
	added   time.Time // its probe is attached after that
}

// of returns the file in this package's form.
func (f *Functions) of(of *window.File) *file {
	known := f.files[of]
	if known == nil {
		known = &file{File: of, all: f, runtime: runtimes[of.Runtime]}
		f.files[of], of.Probes = known, known
	}
	return known
}

// findings are the functions of a runtime in a file, and where each is probed.
type findings struct {
	spots  map[uint64]spot
	worker executable.Function
	points map[uint64]point
}

// point is the probe point of a function, or the reason why it has none.
type point struct {
	executable.ProbePoint
	err error
}

// examine finds the runtime's functions in a file.
func examine(r *runtime, p *executable.Program) (findings, error) {
	spots, worker, err := r.find(p)
	found := findings{spots, worker, map[uint64]point{}}
	errs := []error{err}
	for address := range spots {
		errs = append(errs, found.locate(p, address))
	}
	return found, errors.Join(errs...)
}

// locate finds where a function is probed. The error means that the file could not be read.
func (f findings) locate(p *executable.Program, address uint64) error {
	where, err := p.ProbePoint(address)
	f.points[address] = point{where, err}
	if reader.Unanswered(err) {
		return err
	}
	return nil
}

// probe makes sites of the runtime's functions in the file.
func (f *file) probe(found findings) error {
	f.worker = found.worker
	errs := make([]error, 0, len(found.spots))
	for address, s := range found.spots {
		errs = append(errs, f.addSite(f.runtime, found.points[address], s))
	}
	return errors.Join(errs...)
}

// addSite adds a site to the file. Attach attaches its probe.
func (f *file) addSite(r *runtime, where point, s spot) error {
	if where.err != nil {
		return fmt.Errorf("%s: %w", s.name, where.err)
	}
	all := f.all
	if err := all.Places.Take(f.Owner); err != nil {
		return fmt.Errorf("it is not one of the %d functions that are probed: %w", maxSites, err)
	}
	cost := uint8(window.CostEmulated)
	if where.Stepped {
		cost = all.stepping
	}
	all.lastSite++
	if s.direction == ocall && f.worker.Size > 0 {
		if err := f.tellApart(all.lastSite, where.Offset); err != nil {
			all.Places.Give(f.Owner)
			return fmt.Errorf("%s: %w", s.name, err)
		}
		s.role = roleOcall
	}
	all.sites[all.lastSite] = &site{spot: s, runtime: r, file: f, added: all.Processes.Now()}
	cookie := window.Cookie(f.Index, s.role, cost, all.lastSite)
	cookie |= s.flags(r)
	f.Sites = append(f.Sites, bpf.Site{Offset: where.Offset, Cookie: cookie})
	return nil
}

// tellApart writes the location of the workers' code into the kernel side, relative to the probed instruction of a site.
func (f *file) tellApart(site uint32, offset uint64) error {
	probed, ok := f.Program.Address(offset, elf.PF_X)
	if !ok {
		return errors.New("the probed instruction is in no segment")
	}
	if err := f.all.Object.Map("workers").Put(site, workerCode{From: f.worker.Address - probed, Size: f.worker.Size}); err != nil {
		return fmt.Errorf("distinguishing OCALLs of threads outside: %w", err)
	}
	return nil
}

// Attach implements window.Probes.
func (f *file) Attach() error { return f.attach(f.Sites) }

func (f *file) attach(sites []bpf.Site) error {
	l, err := f.all.call.Attach(f.Path(), sites)
	if err != nil {
		return err
	}
	f.calls = append(f.calls, l)
	if f.Timed {
		f.attachReturns(sites)
	}
	return nil
}

// attachMore attaches sites that were added to a file whose calls are all counted. In a sampled file the next
// window attaches them.
func (f *file) attachMore(added []bpf.Site) error {
	switch {
	case !f.Exact() || len(added) == 0:
		return nil
	case !f.Attached():
		return f.all.Files.Attach(f.File)
	}
	return f.attach(added)
}

// Detach implements window.Probes.
func (f *file) Detach() error {
	l := slices.Concat(f.calls, f.returns)
	f.calls, f.returns = nil, nil
	return l.Close()
}

// Count implements window.Probes.
func (f *file) Count(weight float64) error { return f.all.read(f.File, weight) }

// Close implements window.Probes.
func (f *file) Close() error {
	var errs []error
	for number, s := range f.all.sites {
		if s.file == f {
			delete(f.all.sites, number)
			f.all.Places.Give(f.Owner)
			if s.role == roleOcall {
				errs = append(errs, f.all.remove("workers", number))
			}
		}
	}
	for where := range f.all.tables.attached {
		if where.file == f.ID {
			delete(f.all.tables.attached, where)
			f.all.tables.known.Delete(where)
		}
	}
	delete(f.all.files, f.File)
	return errors.Join(errs...)
}

// time adds probes of the returns of the file's functions.
func (f *file) time() {
	if f.Timed || f.Untimed != "" {
		return
	}
	if f.Untimed = f.all.timer.refused; f.Untimed != "" {
		f.all.Log.Info("calls are counted, but not timed", "file", f.Name, "reason", f.Untimed)
		return
	}
	f.Timed = true
	if f.Attached() {
		f.attachReturns(f.Sites)
	}
}

// attachReturns attaches to the returns of functions whose entries are probed. If that fails, calls are still
// counted.
func (f *file) attachReturns(sites []bpf.Site) {
	var with []bpf.Site
	for _, s := range sites {
		if s.Cookie&window.Returns != 0 {
			with = append(with, s)
		}
	}
	if len(with) == 0 {
		return
	}
	l, err := f.all.timer.returns.AttachReturns(f.Path(), with)
	if err != nil {
		f.Timed, f.Untimed = false, bpf.Reason(err)
		f.all.Log.Info("calls are counted, but not timed", "file", f.Name, "reason", err)
		return
	}
	f.returns = append(f.returns, l)
	f.all.Files.StartTiming(f.File, costReturn)
}

// untime ends the timing of the file's calls. They are still counted.
func (f *file) untime() error {
	f.Timed = false
	f.all.Files.StopTiming(f.File)
	l := f.returns
	f.returns = nil
	return l.Close()
}

// crosses reports whether a call that is not of a worker is one EENTER and one EEXIT. Calls of the SDK count as crossings only once its
// OCALLs are probed too. Otherwise a part of the crossings would look like all of them.
func (s *site) crosses(p *process.Process) bool {
	if s.runtime == sdk && (p == nil || !Complete(s.file.all, p)) {
		return false
	}
	return s.spot.crosses(s.runtime)
}

// crossesSince returns the time since which all crossings of a process are counted by its calls.
func (s *site) crossesSince(p *process.Process) time.Time {
	since := s.added
	if s.runtime == sdk && p != nil {
		for _, is := range s.file.all.state(p).tables {
			if is.at.After(since) {
				since = is.at
			}
		}
	}
	return since
}

// crosses reports whether each call is one EENTER and one EEXIT.
func (s spot) crosses(r *runtime) bool { return slices.Contains(r.crossings, s.direction) }

// source returns the label that says how the calls of a site are counted.
func (s *site) source() string { return s.file.Source(s.runtime.name + "_uprobe") }

type closers []io.Closer

// Close closes all.
func (l closers) Close() error {
	var errs []error
	for _, c := range l {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
