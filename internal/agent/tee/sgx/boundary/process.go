// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/workload"
)

// process is one that runs a program with an enclave.
type process struct {
	programOf
	owner   *workload.Workload[counts]
	runtime string // as the detector calls it
	files   map[*probedFile]bool
	tables  map[uint64]error // of OCALLs, by address: nil where all of them are seen
	threads map[threadKey]*thread
	layout  *layout
	enclave bool
	watched bool               // its calls are timed
	points  *points            // on the way into its enclaves; nil where there are none
	refused bool               // and there will be none
	byVDSO  bool               // it enters enclaves there: its crossings are known from that alone
	held    map[string]float64 // crossings by source, until that is known
	asked   time.Time          // since when it is to be
	last    bool               // what it has counted until now is all
	since   time.Time
	looked  bool              // the first OCALL table was looked at, and with it the names of ECALLs
	named   tableOf           // the one table of an enclave
	ecalls  map[uint32]string // the names that go with it, by number
}

// complete tells whether all OCALLs of the process are seen.
func (p *process) complete() bool {
	for _, err := range p.tables {
		if err != nil {
			return false
		}
	}
	return len(p.tables) > 0
}

// process returns what is known of a process, nil when it has ended before anybody looked.
func (b *Backend) process(tgid uint32) *process {
	if p := b.processes[tgid]; p != nil {
		return p
	}
	running, ok := b.host.program(tgid)
	if !ok || len(b.processes) >= maxProcesses {
		return nil
	}
	p := &process{
		programOf: running, owner: b.registry.Join(b.host.identify(tgid), b.now()),
		files: map[*probedFile]bool{}, tables: map[uint64]error{}, held: map[string]float64{}, threads: map[threadKey]*thread{}, since: b.now(),
	}
	b.processes[tgid] = p
	return p
}

// scan looks for processes with an enclave, probes their files, and forgets those that ended.
func (b *Backend) scan() error {
	pids, err := b.host.proc.Processes()
	if err != nil {
		return fmt.Errorf("listing processes: %w", err)
	}
	for tgid, p := range b.processes {
		running, ok := b.host.program(tgid)
		p.last = (!ok || running != p.programOf) && !p.inWindow()
	}
	errs := []error{b.findTables(), b.settle(nil, 1), b.readThreads()}
	for tgid, p := range b.processes {
		if p.last {
			errs = append(errs, b.end(tgid, p))
		}
	}
	const most = 2 // a program made to be dear to read takes a second
	fresh := len(b.files) + most
	for _, pid := range pids {
		tgid := uint32(pid)
		if len(b.files) >= fresh {
			break // the others are for the next scan
		}
		kind, runtime := b.opts.Detector.Workload([]uint32{tgid})
		enclave := kind == string(tee.SGX)
		if runtime == "" && !enclave || runtime == "gramine-direct" {
			continue
		}
		p := b.process(tgid)
		if p == nil {
			continue
		}
		p.enclave = enclave
		if p.runtime != runtime {
			p.runtime = runtime
			errs = append(errs, b.probeProcess(tgid, p))
		}
		errs = append(errs, b.watch(tgid, p), b.arm(tgid, p))
	}
	b.estimate()
	return errors.Join(append(errs, b.disarm(false), b.dropUnused())...)
}

// end forgets a process. What it counted has been read.
func (b *Backend) end(tgid uint32, p *process) error {
	var calls []callKey
	for key := range b.seen {
		if key.TGID == tgid {
			calls = append(calls, key)
		}
	}
	errs := []error{b.forgetCalls(calls), b.forgetTimes(tgid), b.forgetCrossings(tgid), b.kernel.remove("gramine", tgid)}
	p.leave()
	for address := range p.tables {
		errs = append(errs, b.kernel.remove("tables", tableKey{Address: address, TGID: tgid}))
	}
	b.registry.Leave(p.owner, b.now())
	delete(b.processes, tgid)
	return errors.Join(errs...)
}

// inWindow tells whether calls of the process wait for the end of a window.
func (p *process) inWindow() bool {
	for file := range p.files {
		if !file.sampler.exact && file.sampler.open {
			return true
		}
	}
	return false
}

// probeProcess probes the files of a process that have functions of its runtime.
func (b *Backend) probeProcess(tgid uint32, p *process) error {
	maps, err := b.host.mappings(tgid)
	if err != nil {
		return nil // it has ended
	}
	exe, _ := b.host.of(tgid).Executable() // as its mappings have it
	looked := map[string]bool{}
	for _, m := range maps {
		r := runtimeOf(p.runtime, m.path, m.path == exe)
		if r == nil || looked[m.path] {
			continue
		}
		looked[m.path] = true
		file, err := b.fileOf(tgid, m.path, r)
		if err != nil {
			b.opts.Log.Info("a file is not probed", "file", m.path, "pid", tgid, "reason", err)
			continue
		}
		p.files[file] = true
		if file.layout != nil {
			p.layout = file.layout
			if err := b.kernel.object.Map("gramine").Put(tgid, *file.layout); err != nil {
				return fmt.Errorf("noting a process of Gramine: %w", err)
			}
		}
	}
	return nil
}

// fileOf returns the probed file that a process has mapped, probing it if it is new.
func (b *Backend) fileOf(tgid uint32, path string, r *runtime) (*probedFile, error) {
	f, id, err := b.host.open(tgid, path)
	if err != nil {
		return nil, err
	}
	if file := b.files[id]; file != nil {
		return file, f.Close()
	}
	file, err := b.openFile(f, id, path, r)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	if err := errors.Join(b.probe(file), b.attach(file)); err != nil {
		file.reason = bpf.Reason(err)
		b.opts.Log.Info("not all of a file is probed", "file", path, "reason", err)
	}
	return file, nil
}

// dropUnused ends the probing of files that no process has had for a while.
func (b *Backend) dropUnused() error {
	users, watched := map[*probedFile]bool{}, map[*probedFile]bool{}
	for _, p := range b.processes {
		for file := range p.files {
			users[file] = true
			watched[file] = watched[file] || p.watched
		}
	}
	var errs []error
	now := b.now()
	for _, file := range b.files {
		if file.timed && !watched[file] {
			errs = append(errs, b.untime(file))
		}
		if users[file] {
			file.left = now
		} else if now.Sub(file.left) >= lingering {
			errs = append(errs, b.drop(file))
		}
	}
	return errors.Join(errs...)
}

// maxTables of one process are looked at.
const maxTables = 16

var errTables = errors.New("too many OCALL tables")

// findTables looks for OCALL tables that have not been seen yet.
func (b *Backend) findTables() error {
	found, err := b.kernel.newTables(func(key tableKey) bool {
		p := b.processes[key.TGID]
		if p == nil {
			return false
		}
		_, known := p.tables[key.Address]
		return known
	})
	if err != nil || len(found) == 0 {
		return err
	}
	var all []located
	for _, key := range found {
		p := b.process(key.TGID)
		if p == nil {
			err = errors.Join(err, b.kernel.remove("tables", key))
			continue
		}
		table := located{key: key, process: p, err: errTables} // an enclave has one: this program makes them up
		if len(p.tables) < maxTables {
			table.file, table.address, table.err = b.locateTable(key, p)
		}
		b.nameECalls(table)
		all = append(all, table)
	}
	err = errors.Join(err, b.settle(nil, 1)) // the ECALLs before the OCALLs were seen
	for _, table := range all {
		if table.err == nil {
			table.err = b.addTable(table.file, table.address)
		}
		table.process.tables[table.key.Address] = table.err
		if table.err != nil && !errors.Is(table.err, errTables) {
			b.opts.Log.Info("OCALLs are not all seen", "pid", table.key.TGID, "reason", table.err)
		}
	}
	return err
}

// nameECalls tells a process the names of its ECALLs, if it has one table: which of several goes with a number is
// not counted. A program that executes itself has the same one at another address.
func (b *Backend) nameECalls(t located) {
	p := t.process
	if t.err != nil {
		p.looked, p.named, p.ecalls = true, tableOf{}, nil
		return
	}
	table := tableOf{t.file.id, t.address}
	if p.looked {
		if p.named != table {
			p.named, p.ecalls = tableOf{}, nil
		}
		return
	}
	names, err := t.file.program.ecallNames(t.address)
	if err != nil {
		b.opts.Log.Info("ECALLs have numbers instead of names", "file", t.file.name, "reason", err)
	}
	p.looked, p.named, p.ecalls = true, table, names
}

// sample attaches and detaches what the budget asks for.
func (b *Backend) sample() error {
	var errs []error
	for _, file := range b.files {
		if len(file.sites) == 0 {
			continue
		}
		s, cost := file.sampler, b.kernel.files[file.index].Cost
		switch s.step(b.now(), cost, b.budget()) {
		case attach:
			if err := b.attach(file); err != nil {
				file.reason, file.sites = bpf.Reason(err), nil // once is enough
				if errors.Is(err, fs.ErrPermission) {
					b.opts.Log.Info("a file is not probed any more", "file", file.name, "reason", err)
					continue
				}
				errs = append(errs, err)
			}
		case detach:
			errs = append(errs, b.close(file))
		}
	}
	return errors.Join(errs...)
}

// close ends an interval of counting.
func (b *Backend) close(file *probedFile) error {
	s := file.sampler
	if s.exact {
		b.opts.Log.Info("calls are sampled from now on: there are more than the budget allows",
			"file", file.name, "budget", b.opts.Budget)
	}
	b.gate(file, false)
	end, cost := b.now(), b.kernel.files[file.index].Cost
	err := errors.Join(b.settle(file, s.weight(end)), file.detach())
	s.left(end, b.now(), cost, b.budget())
	return err
}

// budget is what one file may cost, in hits a second; 0 is no bound. The files in use share what the machine
// may pay.
func (b *Backend) budget() float64 {
	if b.opts.Mode == On {
		return 0
	}
	return float64(b.opts.Budget) / float64(max(1, len(b.files)))
}
