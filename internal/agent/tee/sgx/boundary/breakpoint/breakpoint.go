// SPDX-License-Identifier: Apache-2.0

// Package breakpoint counts entries of enclaves and AEXs at ENCLU. There are two doors: the ENCLU of the kernel's vDSO, which
// runtimes of the in-tree driver use, and those in the code of runtimes that have their own. It sets debug-register breakpoints
// on them in the threads of watched processes.
//
// It sets breakpoints only in processes that a rule names. It omits processes of Gramine, whose own counters are better, and
// bytes that may be something else than this instruction.
package breakpoint

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
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
)

// Options configure Breakpoints.
type Options struct {
	Object    *bpf.Object
	Processes *process.Table
	Files     *window.Files
	Families  *count.Families
	// Find finds the instructions in a process.
	Find Find
	// Elsewhere reports whether another mechanism counts the entries of a process.
	Elsewhere func(*process.Process) bool
	// Known are the causes of AEXs that the kernel side distinguishes. None means that causes are not counted.
	Known aex.Causes[bool]
	Log   *slog.Logger
}

// Find returns the ENCLUs of a process. It is called while no lock is held.
type Find func(tgid uint32) (Found, error)

// Found are ENCLUs of a process.
type Found struct {
	Addresses []uint64 // in its memory
	Missing   error    // why there may be others
}

// door is a kind of ENCLU, with its part of the kernel side.
type door struct {
	name     string // the labels file and runtime
	source   string // the label source
	program  string
	counted  string // the map with the counts of processes
	cookie   uint32 // its index among the cookies
	file     hostfs.FileID
	enclaves bool // only processes with an enclave get breakpoints
}

var (
	vdso = door{name: "vdso", source: "vdso_breakpoint", program: "enclu", counted: "crossed", cookie: doorVdso}
	own  = door{
		name: "enclu", source: "enclu_breakpoint", program: "enclu_own", counted: "crossed_own", cookie: doorOwn,
		file: hostfs.FileID{Inode: 1}, enclaves: true, // no file system has the device 0
	}
)

// Breakpoints are the breakpoints on the ENCLUs of one door. It is treated as a file with probes, so that it has windows
// and a budget too.
type Breakpoints struct {
	Options
	door
	points    *bpf.Breakpoints
	cost      uint8        // of a hit
	file      *window.File // nil while no process is watched
	trees     map[uint32]*tree
	lastTree  uint32
	seen      map[uint32]counts                  // as last read from the kernel side
	latest    func(tgid uint32) (*counts, error) // countsOf, except in tests
	reads     int                                // number of complete reads
	processes map[uint32]*state
	spreads   spreads
	places    *tenant.Quota // of breakpoints, each of which is an open file of this process
	tidy      func()
}

// maxAll is the limit of the breakpoints of one door in all processes.
const maxAll = 16384

// state is the state of a watched process.
type state struct {
	tree    *tree  // nil if it has no breakpoints
	refused bool   // it will not get breakpoints
	reason  string // why some or all of its ENCLUs have none
	enters  bool   // it enters enclaves by this door, so only breakpoints count its transitions

	asked     time.Time // when Counts was first called without an answer
	askedRead int       // the reads until then
}

// Follow loads the programs that follow the processes that inherit breakpoints.
func Follow(o *bpf.Object) error {
	for program, tracepoint := range map[string]string{"born": "sched_process_fork", "executed": "sched_process_exec"} {
		_, err := o.Attach(bpf.Probe{Name: program, Ways: []bpf.Way{
			{Program: program, Mechanism: bpf.TypedTracepoint, Target: tracepoint},
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// LoadVDSO loads the program of the breakpoints on the ENCLU of the vDSO.
func LoadVDSO(o Options) (*Breakpoints, error) { return load(o, vdso, func() {}) }

// LoadOwn loads the program of the breakpoints on ENCLUs of runtimes that have their own, which the search finds.
func LoadOwn(o Options, s *Search) (*Breakpoints, error) {
	o.Find = s.find
	return load(o, own, s.tidy)
}

func load(o Options, d door, tidy func()) (*Breakpoints, error) {
	b := &Breakpoints{Options: o, door: d, tidy: tidy, processes: map[uint32]*state{}, places: tenant.NewQuota(maxAll)}
	b.latest = b.countsOf
	var err error
	if b.points, err = bpf.LoadBreakpoints(o.Object, d.program); err != nil {
		return nil, err
	}
	if b.cost, err = measure(b.points); err != nil {
		o.Log.Info("the cost of breakpoints is assumed", "reason", err)
	}
	return b, nil
}

// Examine finds nothing, because files of runtimes have no breakpoint.
func (b *Breakpoints) Examine(*executable.Program, string) (func(*window.File) error, error) {
	return nil, nil
}

// Tick does nothing, because Read is called often enough.
func (b *Breakpoints) Tick() error { return nil }

// Observe sets breakpoints in a watched process, once.
func (b *Breakpoints) Observe(p *process.Process) error {
	s := b.processes[p.TGID]
	switch {
	case !p.Watched || b.enclaves && !p.Enclave:
		return nil
	case b.Elsewhere(p):
		if s != nil && !s.enters {
			s.leave() // debuggers may need the registers
		}
		return nil
	case s != nil && (s.tree != nil || s.refused):
		return nil
	}
	t, err := b.treeOf(p)
	if errors.Is(err, errLater) || reader.Unanswered(err) {
		return nil // the next scan tries again
	}
	s = b.state(p.TGID)
	if b.file != nil {
		p.Files[b.file] = true
	}
	switch {
	case err != nil && !b.Processes.Runs(p.TGID):
	case err != nil:
		return b.refuse(p, err)
	case t == nil:
		s.refused = true
	default:
		t.users++
		s.tree = t
	}
	return nil
}

// treeOf returns the breakpoints of a process: those that it has inherited, or new ones. It returns nil if it gets none.
func (b *Breakpoints) treeOf(p *process.Process) (*tree, error) {
	if b.file != nil {
		if t, err := b.inherited(p.TGID); t != nil || err != nil {
			return t, err
		}
	}
	find, tgid := b.Find, p.TGID
	found, err := process.Later(b.Processes, p, b.name, func() (Found, error) { return find(tgid) })
	if err == nil && len(found.Addresses) == 0 {
		err = found.Missing
	}
	if err != nil || len(found.Addresses) == 0 {
		return nil, err
	}
	if err := b.begin(); err != nil {
		return nil, err
	}
	explain(b, p, found.Missing)
	t, err := b.set(p.TGID, found.Addresses, p.Workload)
	if err != nil && len(b.trees) == 0 { // if no other process has any, there is nothing to switch until the next gets some
		b.file.Sites = nil
	}
	return t, err
}

func (b *Breakpoints) state(tgid uint32) *state {
	s := b.processes[tgid]
	if s == nil {
		s = &state{}
		b.processes[tgid] = s
	}
	return s
}

// open adds the file of the door, if there is none.
func (b *Breakpoints) open() error {
	if b.file != nil {
		return nil
	}
	file, err := b.Files.Add(b.door.file, b.name, b.name, tenant.Tenant{})
	if err != nil {
		return err
	}
	b.file, b.trees, b.seen = file, map[uint32]*tree{}, map[uint32]counts{}
	file.Probes = probes{b}
	return nil
}

// begin starts counting, if it has not begun.
func (b *Breakpoints) begin() error {
	if err := b.open(); err != nil || len(b.file.Sites) > 0 {
		return err
	}
	cookie := window.Cookie(b.file.Index, 0, b.cost, 0)
	b.file.Sites = []bpf.Site{{Cookie: cookie}}
	if err := b.Object.Map("breakpoint").Put(b.cookie, cookie); err != nil {
		return fmt.Errorf("setting the cookie of %s: %w", b.name, err)
	}
	return b.Files.Attach(b.file)
}

// probes are the breakpoints of all processes, as the probes of a file.
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

// Read adds the counts since the previous Read, if every entry is counted now.
func (b *Breakpoints) Read() error { return b.read(nil, 1) }

// read counts each ERESUME as an AEX, because it ends one. An AEX after which the thread is killed has no ERESUME
// and is not counted. Each EENTER counts as an EEXIT too.
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
	entries := b.Object.Map(b.counted).Iterate()
	for entries.Next(&tgid, &n) {
		p := b.Processes.Known(tgid)
		if p == nil && !b.Processes.Runs(tgid) {
			ended = append(ended, tgid)
			// It ended after the counter was read, perhaps after further entries.
			if last, err := b.countsOf(tgid); err == nil && last != nil {
				n = *last
			}
		} else if p == nil && n.Enters > 0 {
			if p = b.Processes.Get(tgid); b.Processes.Waits(tgid) {
				continue
			}
		}
		b.add(p, tgid, n, weight)
	}
	var err error
	if err = entries.Err(); err != nil {
		err = fmt.Errorf("reading how often enclaves were entered: %w", err)
	} else {
		b.reads++
	}
	for _, tgid := range ended {
		err = errors.Join(err, b.forget(tgid))
	}
	b.addVariances(weight)
	return err
}

// since returns the growth since an earlier reading. A process can have the number of one that ended since.
func (n counts) since(last counts) counts {
	if n.Enters < last.Enters || n.Resumes < last.Resumes {
		last = counts{}
	}
	grown := counts{Enters: n.Enters - last.Enters, Resumes: n.Resumes - last.Resumes}
	for cause := range grown.Causes {
		grown.Causes[cause] = n.Causes[cause] - last.Causes[cause]
	}
	return grown
}

// add adds the counts of a process since the previous read. The process is nil if it was never inspected.
func (b *Breakpoints) add(p *process.Process, tgid uint32, n counts, weight float64) {
	last := b.seen[tgid]
	b.seen[tgid] = n
	grown := n.since(last)
	owner, since := b.Processes.Other(), time.Time{}
	if t := b.trees[n.Tree]; t != nil {
		owner, since = t.owner, t.since // the workload of the ancestor whose threads got the breakpoints
	}
	if p != nil {
		owner = p.Workload
		s := b.state(tgid)
		s.enters = s.enters || n.Enters > 0
		if n.Left != 0 {
			s.leave() // until breakpoints are set again
		}
	}
	if n.Enters == 0 {
		return
	}
	source := b.file.Source(b.source)
	b.Families.Cross(owner, since, float64(grown.Enters)*weight, source)
	if b.enclaves && n.Resumes == 0 { // an ENCLU that resumes may be one that was omitted
		return
	}
	count.AddSince(owner, since, float64(grown.Resumes)*weight, b.Families.Transitions, "aex", source)
	if b.Known == (aex.Causes[bool]{}) {
		return
	}
	known := b.Known
	known[aex.Other] = true // what no tracepoint has shown is here
	var causes aex.Causes[float64]
	for cause := range causes {
		causes[cause] = float64(grown.Causes[cause]) * weight
	}
	b.Families.Leave(owner, causes, known, source)
	if !b.file.Exact() {
		b.spreads.add(owner, causes)
	}
}

// addVariances adds the variances of the AEXs that were counted in a window.
func (b *Breakpoints) addVariances(weight float64) {
	if b.file.Exact() {
		b.spreads = spreads{}
		return
	}
	known := b.Known
	known[aex.Other] = true
	b.spreads.endCycle(b.Processes.Now(), weight, func(w *count.Workload, variance aex.Causes[float64]) {
		b.Families.Spread(w, variance, known, b.file.Source(b.source))
	})
}

// leave drops the breakpoints of a process.
func (s *state) leave() {
	if s.tree != nil {
		s.tree.users--
		s.tree = nil
	}
}

// Measures reports whether a process enters enclaves by this door.
func (b *Breakpoints) Measures(p *process.Process) bool {
	s := b.processes[p.TGID]
	return s != nil && s.enters && b.file != nil && p.Files[b.file] && len(b.file.Sites) > 0
}

// entryWait is how long a call of a runtime may take to the ENCLU that enters the enclave: microseconds, unless its thread
// does not run. On a busy machine with emulated instructions it took more than a second.
const entryWait = 10 * time.Second

// Counts reports whether the transitions of a process are counted here, and whether that is known. It is unknown
// for some time after the process got or inherited breakpoints, until it enters an enclave.
//
// It reads the kernel side's counter, because the process may have entered an enclave since the previous Read, and a process that
// has ended may have done so only since.
func (b *Breakpoints) Counts(p *process.Process) (counts, known bool) {
	s := b.processes[p.TGID]
	if s != nil && (s.enters || s.refused) || b.file == nil {
		return s != nil && s.enters, true
	}
	n, err := b.latest(p.TGID)
	switch {
	case err != nil:
		return false, false
	case n == nil:
		return false, true // it has no breakpoints
	case n.Enters > 0:
		return true, true
	case n.Left != 0 || p.Ended:
		return false, true
	}
	s = b.state(p.TGID)
	if s.asked.IsZero() {
		s.asked, s.askedRead = b.Processes.Now(), b.reads
	}
	// The counters must have been read since: on a slow machine the time alone can pass between two reads.
	return false, b.reads > s.askedRead && b.Processes.Now().Sub(s.asked) >= entryWait
}

// Forget forgets a process that has ended, after its counts were read.
func (b *Breakpoints) Forget(p *process.Process) error {
	s := b.state(p.TGID)
	s.leave()
	delete(b.processes, p.TGID)
	if s.reason != "" && b.file != nil {
		summarize(b)
	}
	return b.forget(p.TGID)
}

func (b *Breakpoints) forget(tgid uint32) error {
	delete(b.seen, tgid)
	if err := b.Object.Map(b.counted).Delete(tgid); err != nil && !bpf.IsMissing(err) {
		return fmt.Errorf("deleting the entry counts of process %d: %w", tgid, err)
	}
	return nil
}

// Tidy removes the breakpoints that no process has any longer.
func (b *Breakpoints) Tidy() error {
	b.tidy()
	return b.remove(func(t *tree) bool { return t.users == 0 })
}

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

// Shrink reduces the maps that are unused without breakpoints. It must be called before the maps are created.
func Shrink(o *bpf.Object) error {
	return errors.Join(o.Resize(vdso.counted, 1), o.Resize(own.counted, 1))
}
