// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/functions"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/lib/watch"
)

// mechanism is one method to count crossings of the enclave boundary.
type mechanism interface {
	// Probe sets the probes in a file of a runtime. It is called once for each file.
	Probe(*window.File) error
	// Observe is called with each process in each scan.
	Observe(*process.Process) error
	// Tick does work that cannot wait for the next Read.
	Tick() error
	// Read adds the counts since the previous Read.
	Read() error
	// Measures reports whether crossings of the process are counted.
	Measures(*process.Process) bool
	// Forget forgets a process that has ended, after its counts were read.
	Forget(*process.Process) error
	// Tidy removes what no process uses any longer.
	Tidy() error
}

// mechanisms are the mechanisms that this kernel supports.
type mechanisms []mechanism

// each calls a step of all mechanisms.
func (all mechanisms) each(step func(mechanism) error) error {
	errs := make([]error, 0, len(all))
	for _, m := range all {
		errs = append(errs, step(m))
	}
	return errors.Join(errs...)
}

// measure reports whether any mechanism counts the crossings of a process.
func (all mechanisms) measure(p *process.Process) bool {
	return slices.ContainsFunc(all, func(m mechanism) bool { return m.Measures(p) })
}

func (b *Backend) tick() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.object == nil {
		return nil
	}
	now := b.now()
	b.processes.BeginPass()
	var errs []error
	if now.Sub(b.scanned) >= scanEvery {
		b.scanned = now
		errs = append(errs, b.scan())
	}
	if b.idle() {
		return errors.Join(errs...)
	}
	errs = append(errs, b.files.Step(), b.mechanisms.each(mechanism.Tick))
	if now.Sub(b.read) >= readEvery {
		errs = append(errs, b.readAll(now))
	}
	return errors.Join(errs...)
}

// readAll reads all counters.
func (b *Backend) readAll(now time.Time) error {
	b.read = now
	b.processes.BeginPass()
	return b.mechanisms.each(mechanism.Read)
}

// scan finds processes with an enclave, probes their files, and forgets those that ended.
func (b *Backend) scan() error {
	if err := b.list(); err != nil {
		return err
	}
	b.processes.MarkEnded()
	errs := []error{
		b.mechanisms.each(mechanism.Tick), b.mechanisms.each(mechanism.Read),
		b.processes.RemoveEnded(func(p *process.Process) error {
			return b.mechanisms.each(func(m mechanism) error { return m.Forget(p) })
		}),
	}
	b.processes.Promote()
	const most = 2 // a program can make itself slow to read: up to a second
	limit := b.files.Len() + most
	for len(b.unread) > 0 && b.files.Len() < limit { // the next scan reads the others
		errs = append(errs, b.look(b.unread[0]))
		b.unread = b.unread[1:]
	}
	b.estimate()
	// The mechanisms count what is left, so it is removed before.
	return errors.Join(append(errs, b.Crossings.tidy(), b.mechanisms.each(mechanism.Tidy), b.sweep())...)
}

// list sets the processes that this scan reads: those that are known, those that the detector names, those that the last
// scan has left, and from time to time all.
func (b *Backend) list() error {
	tgids, complete := b.opts.Detector.Due()
	for p := range b.processes.All() {
		tgids = append(tgids, p.TGID)
	}
	tgids = append(tgids, b.unread...)
	if now := b.now(); !complete || now.Sub(b.listed) >= listEvery {
		pids, err := b.processes.Host.Proc.Processes()
		if err != nil {
			return fmt.Errorf("listing processes: %w", err)
		}
		b.listed = now
		for _, pid := range pids {
			tgids = append(tgids, uint32(pid))
		}
	}
	b.unread = b.unread[:0:0]
	listed := make(map[uint32]bool, len(tgids))
	for _, tgid := range tgids {
		if !listed[tgid] {
			listed[tgid] = true
			b.unread = append(b.unread, tgid)
		}
	}
	return nil
}

// look examines one process of the machine.
func (b *Backend) look(tgid uint32) error {
	kind, runtime := b.opts.Detector.Workload([]uint32{tgid})
	enclave := kind == teelabel.SGX
	if runtime == "" && !enclave || runtime == teelabel.GramineDirect {
		return nil
	}
	p := b.processes.Get(tgid)
	if p == nil {
		return nil
	}
	p.Enclave = enclave
	if p.Runtime != runtime {
		p.Runtime, p.Unopened = runtime, true
	}
	if p.Unopened {
		p.Unopened = !b.openFiles(p)
	}
	if !p.Watched && len(b.opts.Watch) > 0 { // checked in each scan, because the name of the process can change
		p.Watched = b.processes.Host.Matches(b.opts.Watch, tgid)
	}
	b.Demands.follow(p, func(rules []watch.Rule) []string { return b.processes.Host.Matching(rules, tgid) })
	return b.mechanisms.each(func(m mechanism) error { return m.Observe(p) })
}

// openFiles probes the files of a process that have functions of its runtime. It returns false if the process did not
// answer. The next scan tries again.
func (b *Backend) openFiles(p *process.Process) (answered bool) {
	from := b.processes.Host
	maps, err := from.Mappings(p.TGID)
	if err != nil {
		return !reader.Unanswered(err) // it has ended
	}
	answered = true
	exe, _ := from.Of(p.TGID).Executable() // as named in its mappings
	looked := map[string]bool{}
	for _, m := range maps {
		mapped := string(m.Path)
		runtime := functions.InFile(p.Runtime, mapped, mapped == exe)
		if runtime == "" || looked[mapped] {
			continue
		}
		looked[mapped] = true
		file, isNew, err := b.files.Open(from, p.TGID, m, runtime)
		if err != nil {
			if reader.Unanswered(err) {
				answered = false
				continue
			}
			b.opts.Log.Info("a file is not probed", "file", mapped, "pid", p.TGID, "reason", err)
			continue
		}
		p.Files[file] = true
		if !isNew {
			continue
		}
		err = b.mechanisms.each(func(m mechanism) error { return m.Probe(file) })
		if reader.Unanswered(err) && !errors.Is(err, window.ErrUnsafe) { // a file that only waits is attached later
			answered = false
			delete(p.Files, file)
			if err := b.files.Drop(file); err != nil {
				b.opts.Log.Warn("dropping a file", "file", mapped, "error", err)
			}
			continue
		}
		if err != nil {
			file.Reason = bpf.Reason(err)
			b.opts.Log.Info("not all of a file is probed", "file", mapped, "reason", err)
		}
	}
	return answered
}

// sweep drops the files that no process maps.
func (b *Backend) sweep() error {
	used := map[*window.File]bool{}
	for p := range b.processes.All() {
		for file := range p.Files {
			used[file] = true
		}
	}
	return b.files.Sweep(func(f *window.File) bool { return used[f] })
}
