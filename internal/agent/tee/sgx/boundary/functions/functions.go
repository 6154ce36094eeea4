// SPDX-License-Identifier: Apache-2.0

// Package functions counts calls into and out of enclaves by probes on the functions of the untrusted runtimes: Intel SDK,
// Open Enclave (EGo) and Occlum, and OCALLs of Gramine. In watched processes it also times them. It does not set a probe
// that might break a program or use a table of functions that is not in the program's file.
package functions

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/count"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// Options configure Functions.
type Options struct {
	Object    *bpf.Object
	UserProbe func(o *bpf.Object, program string) (*bpf.UserProbe, error) // loads one program
	Processes *process.Table
	Files     *window.Files
	Families  *count.Families
	Timing    bool // time the calls of watched processes
	// Elsewhere reports whether another mechanism counts the transitions of a process, and whether that is known
	// yet.
	Elsewhere func(*process.Process) (counted, known bool)
	// ReadExits adds the exits of Gramine's processes up to now, which Gramine counts.
	ReadExits func() error
	Log       *slog.Logger
}

// Functions are the probed functions of all files.
type Functions struct {
	Options
	call      *bpf.UserProbe
	timer     *timer // nil if no process is watched
	tenants   *tenants
	tables    ocallTables
	stepping  uint8 // cost of a hit on an instruction that the kernel single-steps
	files     map[*window.File]*file
	sites     map[uint32]*site
	lastSite  uint32
	Places    *tenant.Quota      // of sites
	counted   map[callKey]uint64 // as last read from the kernel side
	processes map[uint32]*state
	named     named // what the window that ends has seen, in files of Gramine
}

// state is the state of a process.
type state struct {
	tables  map[uint64]examined // OCALL tables by address
	looked  bool                // the first OCALL table was examined, and with it the names of ECALLs
	named   tableOf             // the only OCALL table of an enclave
	ecalls  map[uint32]string   // names of its ECALLs by number
	pending map[string]pending  // transitions by source, until it is known which mechanism counts them
	watched bool                // the kernel side times its calls
}

// pending are transitions that may be counted elsewhere.
type pending struct {
	n     float64
	since time.Time // of the last site that counted them
}

// complete reports whether all OCALLs of the process are probed.
func (s *state) complete() bool {
	for _, is := range s.tables {
		if !is.complete() {
			return false
		}
	}
	return len(s.tables) > 0
}

// Shrink reduces the maps that are unused without timing. It must be called before the maps are created.
func Shrink(o *bpf.Object) error {
	var errs []error
	for _, name := range []string{"durations", "crossed_threads", "following", "pairs"} {
		errs = append(errs, o.Resize(name, 1))
	}
	return errors.Join(errs...)
}

// Load loads the programs. None runs before a file is probed.
func Load(o Options) (*Functions, error) {
	f := &Functions{
		Options: o, files: map[*window.File]*file{}, sites: map[uint32]*site{},
		counted: map[callKey]uint64{}, processes: map[uint32]*state{}, Places: tenant.NewQuota(maxSites),
	}
	f.tables = ocallTables{functions: f, attached: map[tableOf]error{}, known: &sync.Map{}, unsettled: true}
	var err error
	if f.tables.noted, err = bpf.View[uint64](o.Object, "noted"); err != nil {
		return nil, err
	}
	if f.call, err = o.UserProbe(o.Object, "call"); err != nil {
		return nil, err
	}
	if o.Timing {
		if f.timer, err = loadTimer(f); err != nil {
			return nil, err
		}
	}
	if f.tenants, err = loadTenants(f); err != nil {
		return nil, err
	}
	if f.stepping, err = measureStepping(f.call); err != nil {
		o.Log.Info("the cost of probes is assumed", "reason", err)
	}
	return f, nil
}

// Multi reports whether the kernel attaches to all sites of a file at once.
func (f *Functions) Multi() bool { return f.call.Multi() }

// Remembered returns the number of remembered sites, tables and counters. It is 0 if no file is probed.
func (f *Functions) Remembered() int {
	n := len(f.sites) + len(f.tables.attached) + len(f.counted)
	if f.timer != nil {
		n += len(f.timer.timed)
	}
	return n
}

func (f *Functions) state(p *process.Process) *state {
	s := f.processes[p.TGID]
	if s == nil {
		s = &state{tables: map[uint64]examined{}, pending: map[string]pending{}}
		f.processes[p.TGID] = s
	}
	return s
}

// Examine finds the functions of a file's runtime. It uses only the file, so that it needs no lock. It returns a function
// that probes them.
func (f *Functions) Examine(p *executable.Program, runtime string) (func(*window.File) error, error) {
	found, err := examine(runtimes[runtime], p)
	if reader.Unanswered(err) {
		return nil, err
	}
	return func(of *window.File) error {
		attached := f.of(of).probe(found)
		if attach := f.Files.Attach(of); !errors.Is(attach, host.ErrUnsafe) { // else the file waits, and the next step tries again
			attached = errors.Join(attached, attach)
		}
		return errors.Join(attached, err)
	}, nil
}

// Observe registers the owners of a process in the kernel side, and enables timing if the process is watched.
func (f *Functions) Observe(p *process.Process) error {
	if err := f.tenants.join(p); err != nil || f.timer == nil {
		return err
	}
	if !p.Timed() {
		return f.unwatch(p)
	}
	for of := range p.Files {
		if file := f.files[of]; file != nil {
			file.time()
		}
	}
	s := f.state(p)
	if s.watched {
		return nil
	}
	s.watched = true
	if err := f.Object.Map("watched").Put(p.TGID, uint8(1)); err != nil {
		return fmt.Errorf("watching process %d: %w", p.TGID, err)
	}
	return nil
}

// unwatch ends the timing of a process. Calls that have not returned yet are still timed.
func (f *Functions) unwatch(p *process.Process) error {
	s := f.processes[p.TGID]
	if s == nil || !s.watched {
		return nil
	}
	s.watched = false
	return f.remove("watched", p.TGID)
}

// Tick looks for new OCALL tables. OCALLs are not counted before their table is found.
func (f *Functions) Tick() error { return f.tables.find() }

// Read adds the counts and durations since the previous Read, for files whose calls are all counted.
func (f *Functions) Read() error { return f.read(nil, 1) }

// read also reads the counts of a file whose window ends now. Each of its hits stands for weight.
func (f *Functions) read(ending *window.File, weight float64) error {
	err := errors.Join(f.readNamed(ending, weight), f.tenants.read())
	if f.timer != nil {
		err = errors.Join(err, f.timer.read(ending, weight))
	}
	return err
}

// Measures reports whether functions are probed in a file of the process.
func (f *Functions) Measures(p *process.Process) bool {
	for file := range p.Files {
		if f.files[file] != nil && len(file.Sites) > 0 {
			return true
		}
	}
	return false
}

// Complete reports whether all OCALLs of a process of the SDK are probed: those of each table that it has passed, of which there is one.
func Complete(f *Functions, p *process.Process) bool {
	s := f.processes[p.TGID]
	return s != nil && s.complete()
}

// Forget forgets a process that has ended or runs another program now, after its counts were read. Tidy removes its counters when it has
// ended: until then it may count.
func (f *Functions) Forget(p *process.Process) error {
	var errs []error
	if f.timer != nil {
		errs = append(errs, f.remove("watched", p.TGID), forgetPairs(f, p.TGID))
	}
	errs = append(errs, f.tenants.leave(p))
	if s := f.processes[p.TGID]; s != nil {
		for address := range s.tables {
			errs = append(errs, f.remove("tables", tableKey{Address: address, TGID: p.TGID}))
		}
		delete(f.processes, p.TGID)
		f.tables.unsettled = true // the kernel side may have others of it
	}
	return errors.Join(errs...)
}

// forgetCounters removes the counters of a process that has ended, after they were read.
func forgetCounters(f *Functions, tgid uint32) error {
	var calls []callKey
	for key := range f.counted {
		if key.TGID == tgid {
			calls = append(calls, key)
		}
	}
	err := f.forgetCalls(calls)
	if f.timer != nil {
		err = errors.Join(err, f.timer.forget(tgid))
	}
	return err
}

// forgetUnknown removes the counters of processes that have ended and that no scan knew at their end, if everything of them was
// read. Read removes the others. It may have removed the calls of a process and not the durations.
func forgetUnknown(f *Functions) error {
	whole := map[uint32]bool{}
	gone := func(tgid uint32) bool {
		if _, looked := whole[tgid]; !looked {
			whole[tgid] = f.Processes.Known(tgid) == nil && !f.Processes.Runs(tgid)
		}
		return whole[tgid]
	}
	for key, counted := range f.counted {
		var n uint64
		if gone(key.TGID) && f.Object.Map("calls").Lookup(key, &n) == nil {
			whole[key.TGID] = n == counted
		}
	}
	if f.timer != nil {
		for key, timed := range f.timer.timed {
			var d duration
			if gone(key.TGID) && f.Object.Map("durations").Lookup(key, &d) == nil {
				whole[key.TGID] = d == timed
			}
		}
	}
	var errs []error
	for tgid, is := range whole {
		if is {
			errs = append(errs, forgetCounters(f, tgid))
		}
	}
	return errors.Join(errs...)
}

// Tidy ends the timing of files that no watched process has, removes the counts of unknown processes, and counts the places of
// owners.
func (f *Functions) Tidy() error {
	watched := map[*window.File]bool{}
	for p := range f.Processes.All() {
		for file := range p.Files {
			watched[file] = watched[file] || p.Timed()
		}
	}
	errs := []error{forgetUnknown(f)}
	for of, file := range f.files {
		if of.Timed && !watched[of] {
			errs = append(errs, file.untime())
		}
	}
	return errors.Join(append(errs, f.tenants.recount())...)
}

// remove deletes an entry of a map, if it exists.
func (f *Functions) remove(name string, key any) error {
	if err := f.Object.Map(name).Delete(key); err != nil && !bpf.IsMissing(err) {
		return fmt.Errorf("removing an entry of %s: %w", name, err)
	}
	return nil
}
