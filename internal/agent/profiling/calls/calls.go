// SPDX-License-Identifier: Apache-2.0

// Package calls finds the functions through which processes enter and leave enclaves, so that their calls are sampled: those
// of the untrusted runtimes, and the OCALLs in tables of Intel's SDK. It does not take samples or set a probe where a
// program could break.
package calls

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"time"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/functions"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// Limits. What exceeds them is not sampled.
const (
	maxFiles     = 64
	maxFunctions = 4096 // of all files
	maxTables    = 64
	maxKnown     = 1 << 16 // processes
	// maxCandidates is the number of files in one scan, the same file once for each process.
	maxCandidates = 1 << 10
	// maxMapped is the number of mapped files, and maxUses that of pairs of a process and a file. If there are more, no probe is set,
	// because it is not known which processes the kernel would wait for.
	maxMapped, maxUses = 1 << 16, 1 << 20
	// listEvery is the interval between two scans of all processes. A scan also finds runtimes that a process mapped later. A scan that
	// takes long is repeated later: scans take at most one listShare-th of the time.
	listEvery = time.Second
	listShare = 20
)

// Options configure a Finder.
type Options struct {
	Host    host.Processes
	Sampler *profiling.Sampler
	Out     bool // true samples OCALLs, false ECALLs
}

// Finder has the probed files. It is not safe for concurrent use.
type Finder struct {
	Options
	files     map[hostfs.FileID]*file
	tables    map[profiling.Table]bool
	known     map[int]looked
	users     map[hostfs.FileID][]int // the processes that map a file, as mappings show it, at the last look
	uses      int                     // in users
	unread    error                   // why users may lack processes; nil if it lacks none
	functions int
	next      time.Time // of the next scan
	problems  []string
	stated    map[string]bool // all problems since the start
}

// looked is a process at the last look.
type looked struct {
	program  host.Program
	mappings int
}

// file is an opened file of a process.
type file struct {
	opened  *os.File
	mapped  hostfs.FileID // as mappings show it
	program *executable.Program
	probed  map[uint64]bool // linked addresses
	done    bool            // the functions of its runtime are probed, or cannot be
	links   []io.Closer
}

// New returns a Finder that has found nothing.
func New(o Options) *Finder {
	return &Finder{Options: o, files: map[hostfs.FileID]*file{}, tables: map[profiling.Table]bool{}, known: map[int]looked{}, stated: map[string]bool{}}
}

// Close removes all probes.
func (f *Finder) Close() error {
	var errs []error
	for _, one := range f.files {
		for _, l := range one.links {
			errs = append(errs, l.Close())
		}
		errs = append(errs, one.opened.Close())
	}
	f.files = nil
	return errors.Join(errs...)
}

// Functions is the number of functions whose calls are sampled.
func (f *Finder) Functions() int { return f.functions }

// Problems returns the reasons why functions that were found are not sampled, as text for users. Each is returned once, and no more
// than 16 in all, because a process can have any number of broken files.
func (f *Finder) Problems() []string {
	p := f.problems
	f.problems = nil
	return p
}

func (f *Finder) problem(file string, err error) {
	const most = 16
	what := fmt.Sprintf("calls in %s are not all sampled: %v", path.Base(file), err)
	if len(f.stated) < most && !f.stated[what] {
		f.stated[what] = true
		f.problems = append(f.problems, what)
	}
}

// Find looks for new processes and tables. It must be called often, because tables are found by their use.
func (f *Finder) Find() error {
	if began := time.Now(); !began.Before(f.next) {
		pids, err := f.Host.Proc.Processes()
		if err != nil {
			return err
		}
		seen := make(map[int]looked, len(pids))
		f.users, f.uses, f.unread = map[hostfs.FileID][]int{}, 0, nil
		if len(pids) > maxKnown {
			f.unread = fmt.Errorf("%w: there are more than %d processes", errUnsafe, maxKnown)
		}
		var found []candidate
		for _, pid := range pids[:min(len(pids), maxKnown)] {
			found = append(found, f.look(pid, seen, maxCandidates-len(found))...)
		}
		for _, one := range found {
			if err := f.runtime(one.pid, one.Mapping, one.runtime); reader.Unanswered(err) || errors.Is(err, errUnsafe) {
				delete(seen, one.pid) // the next look tries again
			} else if err != nil {
				f.problem(string(one.Path), err)
			}
		}
		f.known = seen
		f.next = began.Add(max(listEvery, listShare*time.Since(began)))
	}
	if !f.Out {
		return nil
	}
	tables, err := f.Sampler.Tables()
	for _, t := range tables {
		if !f.tables[t] && len(f.tables) < maxTables {
			f.tables[t] = f.table(t)
		}
	}
	return err
}

// candidate is a mapped file that may have functions of a runtime.
type candidate struct {
	hostfs.Mapping
	pid     int
	runtime string
}

// look reads the mappings of a process. If they may have changed, it returns those of files that may have functions of a runtime, up
// to a number. No other mappings are kept: a process can have tens of thousands.
func (f *Finder) look(pid int, seen map[int]looked, most int) []candidate {
	program, err := f.Host.Program(uint32(pid))
	if err != nil {
		f.silent(err)
		return nil // it has ended, or is one of the kernel
	}
	maps, err := f.Host.Mappings(uint32(pid))
	if err != nil {
		f.silent(err)
		return nil
	}
	f.note(pid, maps)
	now := looked{program, len(maps)}
	if f.known[pid] == now {
		seen[pid] = now
		return nil
	}
	process := f.Host.Of(uint32(pid))
	clues, err := reader.Of(f.Host.Reads, pid, func() (tee.Clues, error) { return tee.CluesOf(process), nil })
	if err != nil {
		return nil // the next look tries again
	}
	for _, m := range maps {
		clues.Mapped(string(m.Path))
	}
	exe, _ := process.Executable() // as named in its mappings
	done := map[string]bool{}
	var found []candidate
	for _, m := range maps {
		mapped := string(m.Path)
		runtime := functions.InFile(runtimeOf(clues), mapped, mapped == exe)
		if runtime == "" || done[mapped] {
			continue
		}
		if len(found) == most {
			return found // the next look tries again
		}
		done[mapped] = true
		found = append(found, candidate{m, pid, runtime})
	}
	seen[pid] = now
	return found
}

// silent remembers that a process did not answer. It may map any file.
func (f *Finder) silent(err error) {
	if reader.Unanswered(err) {
		f.unread = fmt.Errorf("%w: %w", errUnsafe, err)
	}
}

// note remembers which files a process maps. The rights of the mappings do not matter: the kernel also takes the lock of a process that
// can only read a file, but could make the mapping executable (valid_vma in kernel/events/uprobes.c).
func (f *Finder) note(pid int, maps []hostfs.Mapping) {
	for _, m := range maps {
		users := f.users[m.File]
		if len(users) > 0 && users[len(users)-1] == pid {
			continue
		}
		if f.uses >= maxUses || users == nil && len(f.users) >= maxMapped {
			f.unread = fmt.Errorf("%w: the processes of the machine map too many files", errUnsafe)
			return
		}
		f.users[m.File] = append(users, pid)
		f.uses++
	}
}

// runtimeOf returns the runtime of a process, as the counts of transitions recognise it. A program with an enclave of no known
// runtime may be one of Open Enclave, which leaves no trace if all of it is linked statically. Functions that its file does not
// have get no probe.
func runtimeOf(c tee.Clues) teelabel.Runtime {
	if r := c.Runtime(); r != "" || !c.Enclave {
		return r
	}
	return teelabel.OpenEnclave
}

// open opens a mapped file, or returns the one that is open already.
func (f *Finder) open(pid int, m hostfs.Mapping) (*file, error) {
	opened, id, err := f.Host.Open(uint32(pid), m)
	if err != nil {
		return nil, err
	}
	if one := f.files[id]; one != nil {
		return one, opened.Close()
	}
	program, err := executable.Read(f.Host.Reader(uint32(pid), opened))
	if err == nil && len(f.files) >= maxFiles {
		err = fmt.Errorf("the limit of %d files is reached", maxFiles)
	}
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	one := &file{opened: opened, mapped: m.File, program: program, probed: map[uint64]bool{}}
	f.files[id] = one
	return one, nil
}

// runtime probes the functions of a runtime in a file, once.
func (f *Finder) runtime(pid int, m hostfs.Mapping, runtime string) error {
	one, err := f.open(pid, m)
	if err != nil || one.done {
		return err
	}
	one.done = true
	all, err := functions.Calls(runtime, one.program)
	if err != nil {
		return err
	}
	var addresses []uint64
	for _, c := range all {
		if c.Out == f.Out {
			addresses = append(addresses, c.Address)
		} else if f.Out && c.Table {
			err = errors.Join(err, f.probe(one, []uint64{c.Address}, true))
		}
	}
	err = errors.Join(err, f.probe(one, addresses, false))
	one.done = !errors.Is(err, errUnsafe)
	return err
}

// probe attaches to functions of a file that have no probe yet.
func (f *Finder) probe(one *file, addresses []uint64, table bool) error {
	var sites []profiling.Function
	var marked []uint64
	var errs []error
	for _, a := range addresses {
		if one.probed[a] {
			continue
		}
		one.probed[a], marked = true, append(marked, a)
		if f.functions >= maxFunctions {
			return fmt.Errorf("more than %d functions", maxFunctions)
		}
		point, err := one.program.ProbePoint(a)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sites = append(sites, profiling.Function{Offset: point.Offset, Table: table})
	}
	if len(sites) == 0 {
		return errors.Join(errs...)
	}
	if err := f.answer(one); err != nil {
		for _, a := range marked { // the next look tries again
			delete(one.probed, a)
		}
		return errors.Join(append(errs, err)...)
	}
	link, err := f.Sampler.AttachFunctions(hostfs.DescriptorPath(int(one.opened.Fd())), sites)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	one.links = append(one.links, link)
	if !table {
		f.functions += len(sites)
	}
	return errors.Join(errs...)
}

// errUnsafe is the error of a file that is not probed, because the kernel would wait for one of its processes.
var errUnsafe = errors.New("a process that maps the file does not answer")

// answer returns an error if a process that maps a file holds the lock of its memory. The kernel waits for these locks while it attaches
// probes, and no process of the machine can fork in that time (register_for_each_vma in kernel/events/uprobes.c).
func (f *Finder) answer(one *file) error {
	if f.unread != nil {
		return f.unread
	}
	for _, pid := range f.users[one.mapped] {
		if err := f.Host.Answers(uint32(pid)); err != nil {
			return fmt.Errorf("%w: %w", errUnsafe, err)
		}
	}
	return nil
}

// table probes the functions of a table of OCALLs. Their addresses are read from the file that has the table, never from
// memory, because a process could pass the address of anything. It returns false if the process did not answer.
func (f *Finder) table(t profiling.Table) bool {
	maps, err := f.Host.Mappings(uint32(t.PID))
	if err != nil {
		return !reader.Unanswered(err) // it has ended
	}
	for _, m := range maps {
		if t.Address < m.Start || t.Address >= m.End {
			continue
		}
		err := f.tableIn(t, m)
		if reader.Unanswered(err) || errors.Is(err, errUnsafe) {
			return false
		}
		if err != nil {
			f.problem(string(m.Path), err)
		}
		return true
	}
	f.problem(fmt.Sprintf("process %d", t.PID), errors.New("its OCALL table is in no file"))
	return true
}

func (f *Finder) tableIn(t profiling.Table, m hostfs.Mapping) error {
	one, err := f.open(t.PID, m)
	if err != nil {
		return err
	}
	address, ok := one.program.Address(t.Address-m.Start+m.Offset, elf.PF_R)
	if !ok {
		return errors.New("the OCALL table is not in the file")
	}
	all, err := functions.OCalls(one.program, address)
	return errors.Join(err, f.probe(one, all, false))
}
