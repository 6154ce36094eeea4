// SPDX-License-Identifier: Apache-2.0

// Package symbol finds the names of sampled addresses: in the files that a process has mapped and in their debug files, in
// the kernel's vDSO, in the perf map of a just-in-time compiler, and in the kernel's own list.
//
// Files and mappings belong to untrusted processes. So all reads have bounds. Reads that a process can delay have a deadline
// and run without a lock. The package uses no network, and it unwinds no stacks.
package symbol

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/symbols"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Limits.
const (
	maxProcesses = 8192
	maxMappings  = 1 << 18 // executable ones of all processes together
	maxFiles     = 512     // that are open
	// pauseFactor is the ratio of the pause before the mappings of a process are read again to the time of reading them. So a
	// process with very many mappings does not take the time of all others.
	pauseFactor = 20
	// retryAfter is the time before a file is opened again, or a process named again, if the process did not answer.
	retryAfter = 5 * time.Second
)

// The reasons why an address has no name.
const (
	gone       = "the process ended before its mappings were read"
	silent     = "the process did not answer when its mappings were read"
	unmapped   = "the address is in no executable mapping of its process"
	unreadable = "the mapped file cannot be read"
	stripped   = "the file has no symbol for the address, and no debug file is installed"
	noPerfMap  = "code that the program has generated, and no perf map has a name for it"
	hidden     = "the kernel does not show its symbols (kernel.kptr_restrict, CAP_SYSLOG)"
	foreign    = "no function of the kernel covers the address"
	tooMuch    = "more processes or mappings than are kept"
	costly     = "reading the symbols of its workload takes too long"
)

// Libraries that are not files.
const (
	kernelLibrary = "[kernel.kallsyms]" // as perf calls it
	vdso          = "[vdso]"
)

// Options configure a Table.
type Options struct {
	Proc   hostfs.Root // /proc
	Sys    hostfs.Root // /sys
	Cgroup string      // root of the cgroup file systems
	Debug  string      // directory of debug files, which has a folder .build-id
	Reads  *reader.Pool
	Watch  []watch.Rule
	// Remember keeps the names that were found in files and in the kernel, so that the next Resolve need not read these again.
	Remember bool
	// Work limits the bytes of tables of symbols and of perf maps that one Resolve reads. 0 is no limit.
	Work uint64
}

// Table contains processes, their mappings and files.
type Table struct {
	Options
	host      host.Processes
	processes map[profiling.Process]*Process
	files     map[fileKey]*file
	open      int
	mapped    int
	own       *file // the vDSO of this process
	ownSize   uint64
	kernel    *Mapping
	kallsyms  *hostfs.Stream // nil if it cannot be read
	known     map[namedKey]Name
	functions kernelFunctions // that were found
	// nameless are addresses of the kernel without a name, and why. They are looked for again at kernelAgain.
	nameless    map[uint64]string
	kernelAgain time.Time
}

// New returns an empty table.
func New(o Options) *Table {
	t := &Table{
		Options: o, host: host.New(o.Proc.Path(), o.Cgroup, o.Reads), processes: map[profiling.Process]*Process{}, files: map[fileKey]*file{},
	}
	t.kernel = &Mapping{End: ^uint64(0), Path: kernelLibrary, kind: ofKernel, BuildID: t.kernelBuildID()}
	t.own, t.ownSize = ownVDSO(o.Proc)
	t.kallsyms, _ = o.Proc.Open(maxKallsyms+1, "kallsyms") // none: kernel addresses have no names
	return t
}

// Close closes all files.
func (t *Table) Close() error {
	var errs []error
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	for _, p := range t.processes {
		if p.root != nil {
			errs = append(errs, p.root.Close())
		}
	}
	if t.kallsyms != nil {
		errs = append(errs, t.kallsyms.Close())
	}
	t.files, t.processes = nil, nil
	return errors.Join(errs...)
}

// kind is the kind of a mapping.
type kind int

const (
	ofFile kind = iota
	ofVDSO
	ofProgram // the process has generated it
	ofKernel
)

// Mapping is executable memory of a process, or the kernel's.
type Mapping struct {
	Start, End, Offset uint64
	Path               string // as the kernel shows it: any bytes
	BuildID            string // hexadecimal digits; empty if there is none or it is not known
	kind               kind
	file               *file     // of a mapping that has an address; nil if it cannot be read
	looked             bool      // whether file was looked for
	retry              time.Time // when file may be looked for again, after its process did not answer
	id                 hostfs.FileID
}

// Process is a process with its mappings when it was last inspected.
type Process struct {
	profiling.Process
	Workload string    // empty if the process ended before its control group was read
	Watched  bool      // whether a rule of Options.Watch matches it
	rename   time.Time // when these may be read again, if they could not be; zero if they could
	mapped
	looks  int       // how often the mappings were read
	reason string    // why there are none
	missed bool      // an address was in none of them since Tick
	again  time.Time // when the mappings may be read again
	root   *os.File  // of its file system, for its perf map; nil if it has no generated code or it is not known
	names  perfNames
}

// Of returns the process of a sample. It is inspected at the first request, which should be soon after the sample.
func (t *Table) Of(s *profiling.Sample) *Process {
	p := t.processes[s.Process]
	if p != nil {
		if !p.rename.IsZero() && !time.Now().Before(p.rename) && named(t.host, s) {
			name(t, p, s)
		}
		return p
	}
	p = &Process{Process: s.Process}
	if len(t.processes) >= maxProcesses {
		p.reason = tooMuch
	} else {
		t.processes[s.Process] = p
	}
	switch {
	case s.KernelThread:
		p.Workload = workload.KernelThreads.Name
	case p.reason == "" && t.runs(s.Process) && !named(t.host, s):
		// It executes another program by now, or has renamed itself. The next samples will tell.
		delete(t.processes, s.Process)
		p.reason = gone
	case p.reason == "" && t.runs(s.Process):
		name(t, p, s)
		t.look(p)
		if t.runs(s.Process) {
			return p
		}
		t.mapped -= len(p.mappings)
		p.Workload, p.rename, p.mapped, p.reason = "", time.Time{}, mapped{}, gone // another process may have its ID
	default:
		p.reason = cmp.Or(p.reason, gone)
	}
	p.Watched = matches(t.Watch, s)
	return p
}

// matches compares what a sample shows of its process with the rules.
func matches(rules []watch.Rule, s *profiling.Sample) bool {
	return watch.Matches(rules, watch.Process{PID: s.PID, Comm: s.Name})
}

// name reads the workload of a process, and compares the process with the rules. If it cannot be read now, a later sample tries again.
func name(t *Table, p *Process, s *profiling.Sample) {
	id, unnamed := t.host.Identify(uint32(p.PID)) // without a name if it does not answer
	is, err := t.host.Described(uint32(p.PID))
	if !t.runs(p.Process) {
		return // it may be another process, and nothing is changed
	}
	p.Workload, p.rename = id.Name, time.Time{}
	if p.Watched = watch.Matches(t.Watch, is); err != nil {
		p.Watched = matches(t.Watch, s)
	}
	if unnamed != nil || err != nil {
		p.rename = time.Now().Add(retryAfter)
	}
}

// named reports whether a process has the name that it had when the sample was taken.
func named(h host.Processes, s *profiling.Sample) bool {
	name, err := h.Of(uint32(s.PID)).Comm()
	return err == nil && name == s.Name
}

// tick is the unit of the start time in /proc.
const tick = 1e9 / 100

// runs reports whether a process still runs. Its start is compared in the units of /proc, which is rounded down.
func (t *Table) runs(id profiling.Process) bool {
	stat, err := t.host.Of(uint32(id.PID)).Thread(id.PID).Stat()
	return err == nil && !stat.Ended() && stat.Started/tick == id.Start/tick
}

// Tick allows the mappings of processes to be read again if samples were outside of them.
func (t *Table) Tick() {
	for _, p := range t.processes {
		p.missed = false
	}
}

// look reads the mappings of a process. Those that it had already stay the same.
func (t *Table) look(p *Process) {
	began := time.Now()
	defer func() { p.again = time.Now().Add(pauseFactor * time.Since(began)) }()
	read, err := reader.Of(t.Reads, p.PID, func() (r mapped, err error) {
		err = t.host.Of(uint32(p.PID)).Mappings(func(m hostfs.Mapping) {
			r.enclaves = addEnclave(r.enclaves, m)
			if m.Executable {
				r.mappings = append(r.mappings, &Mapping{Start: m.Start, End: m.End, Offset: m.Offset, Path: string(m.Path), kind: kindOf(m), id: m.File})
			}
		})
		return r, err
	})
	all := read.mappings
	switch {
	case reader.Unanswered(err):
		if len(p.mappings) == 0 {
			p.reason = silent
		}
		return
	case err != nil || len(all) == 0:
		p.reason = cmp.Or(p.reason, gone)
		return
	}
	same := func(a, b *Mapping) bool {
		return a.Start == b.Start && a.End == b.End && a.Offset == b.Offset && a.Path == b.Path && a.id == b.id
	}
	for i, m := range all {
		if have := p.findName(m.Start); have != nil && same(have, m) {
			all[i] = have
		}
	}
	if t.mapped+len(all)-len(p.mappings) > maxMappings {
		p.reason = tooMuch
		return
	}
	t.mapped += len(all) - len(p.mappings)
	p.mapped, p.reason = read, ""
	p.looks++
}

func kindOf(m hostfs.Mapping) kind {
	path := string(m.Path)
	switch {
	case path == vdso:
		return ofVDSO
	case !m.IsFile(), strings.HasPrefix(path, "/memfd:"), strings.HasPrefix(path, "/dev/zero"), strings.HasPrefix(path, "/SYSV"):
		return ofProgram
	}
	return ofFile
}

// findName returns the mapping of an address, or nil.
func (p *Process) findName(address uint64) *Mapping {
	at, found := slices.BinarySearchFunc(p.mappings, address, func(m *Mapping, a uint64) int { return cmp.Compare(m.Start, a) })
	if !found {
		at--
	}
	if at < 0 || address >= p.mappings[at].End {
		return nil
	}
	return p.mappings[at]
}

// Mapping returns the mapping of a user address, or nil. It opens the mapped file, which may be gone later.
func (t *Table) Mapping(p *Process, address uint64) *Mapping {
	m := p.findName(address)
	if m == nil && t.lookAgain(p) {
		m = p.findName(address)
	}
	if m != nil {
		t.find(p, m)
	}
	return m
}

// lookAgain reads the mappings of a process again, if they may have changed since and it is time to.
func (t *Table) lookAgain(p *Process) bool {
	if p.missed || p.reason != "" && p.reason != silent || time.Now().Before(p.again) {
		return false
	}
	p.missed = true
	if !t.runs(p.Process) {
		return false
	}
	t.look(p)
	return true
}

// find opens the file of a mapping, once.
func (t *Table) find(p *Process, m *Mapping) {
	if m.looked || time.Now().Before(m.retry) {
		return
	}
	m.looked = true
	switch m.kind {
	case ofFile:
		var err error
		if m.file, err = t.fileOf(p, m); reader.Unanswered(err) {
			m.looked, m.retry = false, time.Now().Add(retryAfter)
		}
	case ofVDSO:
		if m.End-m.Start == t.ownSize { // that of a 32-bit process is another one
			m.file = t.own
		}
	case ofProgram:
		t.pinRoot(p)
	}
	if m.file != nil {
		m.BuildID = m.file.buildID
	}
}

// Code is a mapping of a file with code.
type Code struct {
	*Mapping
	Program *executable.Program // nil if it is none, or cannot be read
	Version any                 // equal for the same content of the same file, also after it was closed and opened again
}

// Looks returns how often the mappings of the process were read. Code may return others after each.
func (p *Process) Looks() int { return p.looks }

// Mappings returns the number of mappings with code.
func (p *Process) Mappings() int { return len(p.mappings) }

// Code returns the mappings of a process with code, in ascending order, and opens their files.
func (t *Table) Code(p *Process) []Code {
	var all []Code
	for _, m := range p.mappings {
		t.find(p, m)
		c := Code{Mapping: m}
		if m.file != nil {
			c.Program, c.Version = m.file.program, m.file
		}
		all = append(all, c)
	}
	return all
}

// KernelMapping returns the mapping of all kernel addresses.
func (t *Table) KernelMapping() *Mapping { return t.kernel }

// Location is a sampled address.
type Location struct {
	Process *Process // nil for a kernel address
	Mapping *Mapping // nil if it is in none
	Address uint64
}

// Name is the name of a location.
type Name struct {
	Function string // readable name; empty if none was found
	System   string // as the linker knows it, if that differs
	Library  string // instead of the mapping's path: a module of the kernel
	Reason   string // why there is no function
}

// Resolve finds the names of locations. It reads each file once.
func (t *Table) Resolve(locations []Location) []Name {
	names := make([]Name, len(locations))
	files, programs := map[*file][]int{}, map[*Process][]int{}
	var kernel []int
	for i, l := range locations {
		name, remembered := t.recall(l)
		switch m := l.Mapping; {
		case remembered:
			names[i] = name
		case m == nil:
			names[i].Reason = cmp.Or(l.Process.reason, unmapped)
		case m.kind == ofKernel:
			kernel = append(kernel, i)
		case m.kind == ofProgram:
			programs[l.Process] = append(programs[l.Process], i)
		case m.file == nil:
			names[i].Reason = unreadable
		default:
			files[m.file] = append(files[m.file], i)
		}
	}
	var sources []source
	for f, list := range files {
		of := locations[list[0]].Process // others may use the file too
		sources = append(sources, source{list, of.Workload, costOf(t, f, len(list)), func() { t.resolveFile(f, list, locations, names) }})
	}
	for p, list := range programs {
		for _, i := range list {
			names[i].Reason = noPerfMap
		}
		if in, err := t.openPerfMap(p); err == nil {
			defer in.Close()
			sources = append(sources, source{list, p.Workload, uint64(in.size), func() { t.resolveProgram(p, in, list, locations, names) }})
		}
	}
	readInTurn(sources, t.Work, names)
	if len(kernel) > 0 {
		t.resolveKernel(kernel, locations, names)
	}
	for i := range names {
		if names[i].Function == "" {
			names[i].Function = symbols.Readable(names[i].System)
		}
		t.remember(locations[i], names[i])
	}
	return names
}

// sorted returns addresses in ascending order, each once, and for each of the given ones its index among them.
func sorted(addresses []uint64) (unique []uint64, index []int) {
	unique = slices.Compact(slices.Sorted(slices.Values(addresses)))
	for _, a := range addresses {
		at, _ := slices.BinarySearch(unique, a)
		index = append(index, at)
	}
	return unique, index
}

// Generated reports whether the mapping is of code that its process has generated, which has no file.
func (m *Mapping) Generated() bool { return m.kind == ofProgram }

// Mapped reports whether the mappings of the process are known. An address in none of them is no code then.
func (p *Process) Mapped() bool { return p.reason == "" && len(p.mappings) > 0 }
