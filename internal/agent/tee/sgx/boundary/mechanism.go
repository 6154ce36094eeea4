// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/lib/watch"
)

// mechanism is one method to count transitions of the enclave boundary.
type mechanism interface {
	// Examine finds the probe points in a file of a runtime. It returns a function that sets the probes, or nil. It is called
	// while no lock is held, and uses only the file.
	Examine(p *executable.Program, runtime string) (func(*window.File) error, error)
	// Observe is called with each process in each scan.
	Observe(*process.Process) error
	// Tick does work that cannot wait for the next Read.
	Tick() error
	// Read adds the counts since the previous Read.
	Read() error
	// Measures reports whether transitions of the process are counted.
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

// measure reports whether any mechanism counts the transitions of a process.
func (all mechanisms) measure(p *process.Process) bool {
	return slices.ContainsFunc(all, func(m mechanism) bool { return m.Measures(p) })
}

// tick does what is due. Processes are read between its steps, while the lock is not held.
func (b *Backend) tick() error {
	errs := []error{b.begin()}
	const rounds = 32 // a new process needs about six
	for round := range rounds {
		arrived := b.ahead.Run(patience(b))
		if len(arrived) == 0 && round > 0 {
			break
		}
		errs = append(errs, b.goOn(arrived))
	}
	return errors.Join(errs...)
}

// patience is how long a tick waits for reads: not longer than until a window opens or closes.
func patience(b *Backend) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.object == nil {
		return 0
	}
	now := b.now()
	return max(0, b.files.Windows(now.Add(b.patience)).Sub(now))
}

// begin does the work that needs no read, and requests the reads that are due.
func (b *Backend) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.object == nil {
		return nil
	}
	now := b.now()
	var errs []error
	if !now.Before(nextScan(b)) && !b.scans {
		b.scanned, b.scans, b.hurried = now, true, false
		errs = append(errs, b.list())
		b.processes.Check()
		detect(b)
	}
	if b.idle() {
		return errors.Join(errs...)
	}
	b.processes.BeginPass()
	errs = append(errs, b.files.Step(), b.mechanisms.each(mechanism.Tick))
	if now.Sub(b.read) >= readEvery {
		errs = append(errs, b.gramine.Ask())
		b.reads = true
	}
	return errors.Join(errs...)
}

// goOn uses the results that have arrived.
func (b *Backend) goOn(arrived map[uint32]bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.object == nil {
		return nil
	}
	b.processes.BeginPass()
	var errs []error
	if b.scans {
		if found, ok := detected(b); ok {
			b.scans, b.found = false, found
			errs = append(errs, b.scan())
		}
	}
	for tgid := range arrived {
		errs = append(errs, b.look(tgid))
	}
	if b.idle() {
		return errors.Join(errs...)
	}
	errs = append(errs, b.files.Step(), b.mechanisms.each(mechanism.Tick))
	if b.reads {
		errs = append(errs, b.readAll(b.now()))
		b.reads = b.processes.Waiting()
	}
	return errors.Join(errs...)
}

// refresh requests reads of Gramine's counters and waits for them, so that the next readAll is up to date.
func refresh(b *Backend) error {
	if !b.mu.TryLock() { // something else reads, or waits for the kernel
		return nil
	}
	if b.object == nil {
		b.mu.Unlock()
		return nil
	}
	err := b.gramine.Ask()
	b.mu.Unlock()
	waitForReads(b)
	return err
}

// waitForReads waits for the requested reads. The next tick uses the results.
func waitForReads(b *Backend) {
	for tgid := range b.ahead.Run(b.patience) {
		b.ahead.Arrive(tgid)
	}
}

// readAll reads all counters.
func (b *Backend) readAll(now time.Time) error {
	b.read = now
	b.processes.BeginPass()
	return b.mechanisms.each(mechanism.Read)
}

// finding is the detector's result for a process.
type finding struct {
	enclave bool
	runtime teelabel.Runtime
}

// detecting is the key of the detector's answers.
var detecting = host.Key{What: "detector"}

// detect asks the detector about the listed processes. It reads those that are new.
func detect(b *Backend) {
	tgids, detector := slices.Clone(b.unread), b.opts.Detector
	b.ahead.Ask(detecting, func() (any, error) {
		found := make(map[uint32]finding, len(tgids))
		for _, tgid := range tgids {
			kind, runtime := detector.Workload([]uint32{tgid})
			if f := (finding{kind == teelabel.SGX, runtime}); f != (finding{}) {
				found[tgid] = f
			}
		}
		return found, nil
	})
}

func detected(b *Backend) (map[uint32]finding, bool) {
	value, _, ok := b.ahead.Take(detecting)
	found, _ := value.(map[uint32]finding)
	return found, ok
}

// scan finds processes with an enclave, probes their files, and forgets those that ended.
func (b *Backend) scan() error {
	b.processes.MarkEnded()
	errs := []error{
		b.mechanisms.each(mechanism.Tick), b.mechanisms.each(mechanism.Read),
		b.processes.RemoveEnded(func(p *process.Process) error {
			return b.mechanisms.each(func(m mechanism) error { return m.Forget(p) })
		}),
	}
	b.processes.Promote()
	for _, tgid := range b.unread {
		errs = append(errs, b.look(tgid))
	}
	b.unread = nil
	b.estimate()
	// The mechanisms count what is left, so it is removed before.
	return errors.Join(append(errs, b.Transitions.tidy(), b.mechanisms.each(mechanism.Tidy), sweep(b))...)
}

// list sets the processes that this scan reads: those that are known, those that the detector names, those that the last
// scan has left, and from time to time all.
func (b *Backend) list() error {
	tgids, complete := b.opts.Detector.Due()
	for p := range b.processes.All() {
		tgids = append(tgids, p.TGID)
	}
	tgids = slices.AppendSeq(tgids, maps.Keys(b.found)) // some are not known yet
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
	is := b.found[tgid]
	if is == (finding{}) || is.runtime == teelabel.GramineDirect {
		return nil
	}
	p := b.processes.Get(tgid)
	if p == nil {
		return nil
	}
	p.Enclave = is.enclave
	if p.Runtime != is.runtime {
		p.Runtime, p.Unopened = is.runtime, true
	}
	if p.Unopened {
		p.Unopened = !b.openFiles(p)
	}
	matches := matching(b, p)
	if !p.Watched && len(b.opts.Watch) > 0 { // checked in each scan, because the name of the process can change
		p.Watched = len(matches(b.opts.Watch)) > 0
	}
	b.Demands.follow(p, matches)
	return b.mechanisms.each(func(m mechanism) error { return m.Observe(p) })
}

// matching returns a function that returns the texts of the rules that name a process. It returns none before the process was
// read. The read is requested at most once.
func matching(b *Backend, p *process.Process) func([]watch.Rule) []string {
	from, tgid := b.processes.Host, p.TGID
	look := sync.OnceValues(func() (watch.Process, error) {
		return process.Later(b.processes, p, "rules", func() (watch.Process, error) { return from.Described(tgid) })
	})
	return func(rules []watch.Rule) []string {
		is, err := look()
		if err != nil {
			return nil
		}
		return watch.Matching(rules, is)
	}
}

// openFiles probes the files of a process that have functions of its runtime. It returns false if the process did not
// answer, or has not yet. It is tried again when its answer arrives, and by the next scan.
func (b *Backend) openFiles(p *process.Process) (answered bool) {
	from, tgid, runtime := b.processes.Host, p.TGID, p.Runtime
	read := readFiles{runtime: runtime, mechanisms: b.mechanisms, known: b.files.Has}
	files, err := process.Later(b.processes, p, filesOf{runtime}, func() (readings, error) { return read.of(from, tgid) })
	if err != nil {
		return !reader.Unanswered(err) // it has ended
	}
	answered = true
	for _, f := range files {
		switch err := take(b, p, f); {
		case err == nil:
		case reader.Unanswered(err):
			answered = false
		default:
			b.opts.Log.Info("a file is not probed", "file", f.path, "pid", p.TGID, "reason", err)
		}
	}
	return answered
}

// take adds a file that was read to a process, and probes it if it is new.
func take(b *Backend, p *process.Process, f fileReading) error {
	if f.err != nil {
		return f.err
	}
	examined := f.probe != nil
	if !examined && !b.files.Has(f.opened.ID) { // it was dropped meanwhile
		return errors.Join(reader.ErrStuck, f.opened.Close())
	}
	file, isNew, err := b.files.Take(f.opened, f.runtime)
	if err != nil {
		return err
	}
	p.Files[file] = true
	if !isNew {
		return nil
	}
	var errs []error
	for _, probe := range f.probe {
		errs = append(errs, probe(file))
	}
	if err := errors.Join(errs...); err != nil {
		file.Partly = bpf.Reason(err)
		if !file.Waits() {
			file.Reason = file.Partly
		}
		b.opts.Log.Info("not all of a file is probed", "file", f.path, "reason", err)
	}
	return nil
}

// sweep drops the files that no process maps.
func sweep(b *Backend) error {
	used := map[*window.File]bool{}
	for p := range b.processes.All() {
		for file := range p.Files {
			used[file] = true
		}
	}
	return b.files.Sweep(func(f *window.File) bool { return used[f] })
}
