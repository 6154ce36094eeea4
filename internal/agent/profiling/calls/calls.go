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
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/executable"
	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/functions"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/hostfs/tenant"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// Limits. What exceeds them is not sampled, or not stated. Tenants share the places of the first four.
const (
	maxFiles     = 64
	maxFunctions = 4096 // of all files
	maxTables    = 64
	maxStated    = 16      // problems
	maxKnown     = 1 << 16 // processes
	// maxCandidates is the number of files in one scan, the same file once for each process.
	maxCandidates = 1 << 10
	// listEvery is the interval between two scans of all processes. A scan also finds runtimes that a process mapped later. A scan that
	// takes long is repeated later: scans take at most one listShare-th of the time.
	listEvery = time.Second
	listShare = 20
	// tenantTime is the time for files of one tenant in a scan, after which it waits for the next one. A usual file takes a few milliseconds,
	// and a hostile one seconds.
	tenantTime = time.Second
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
	users     *users
	functions int
	next      time.Time // of the next scan
	// Places of the files, the functions, the tables and the problems.
	filePlaces, functionPlaces, tablePlaces, problemPlaces *tenant.Quota

	problems   []string
	stated     map[string]bool // all problems since the start
	tenantTime time.Duration
}

// looked is a process at the last look.
type looked struct {
	program  host.Program
	mappings int
}

// file is an opened file of a process.
type file struct {
	opened  *os.File
	owner   tenant.Tenant // of the first process that mapped it
	mapped  hostfs.FileID // as mappings show it
	program *executable.Program
	probed  map[uint64]bool // linked addresses
	done    bool            // the functions of its runtime are probed, or cannot be
	links   []io.Closer
}

// New returns a Finder that has found nothing.
func New(o Options) *Finder {
	return &Finder{
		Options: o, files: map[hostfs.FileID]*file{}, tables: map[profiling.Table]bool{}, known: map[int]looked{}, stated: map[string]bool{}, users: newUsers(o.Host),
		filePlaces: tenant.NewQuota(maxFiles), functionPlaces: tenant.NewQuota(maxFunctions), tablePlaces: tenant.NewQuota(maxTables),
		problemPlaces: tenant.NewQuota(maxStated), tenantTime: tenantTime,
	}
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
// than maxStated in all, because a process can have any number of broken files.
func (f *Finder) Problems() []string {
	p := f.problems
	f.problems = nil
	return p
}

// problem states why functions of a tenant's file are not sampled, if there is an error. One that does not answer in time is stated too,
// because a profile may end before it does.
func (f *Finder) problem(of tenant.Tenant, file string, err error) {
	if err == nil {
		return
	}
	what := fmt.Sprintf("not all calls in %s are sampled: %v", path.Base(file), err)
	if !f.stated[what] && f.problemPlaces.Take(of) == nil {
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
		f.users.begin()
		if len(pids) > maxKnown {
			f.users.incomplete(fmt.Errorf("there are more than %d processes", maxKnown))
		}
		var found []candidate
		for _, pid := range pids[:min(len(pids), maxKnown)] {
			found = append(found, f.look(pid, seen, maxCandidates-len(found))...)
		}
		f.users.finish()
		f.inTurn(found, seen, func(one candidate) error { return f.runtime(one.pid, one.Mapping, one.runtime) })
		f.known = seen
		f.next = began.Add(max(listEvery, listShare*time.Since(began)))
	}
	if !f.Out {
		return nil
	}
	tables, err := f.Sampler.Tables()
	for _, t := range tables {
		if done, known := f.tables[t]; !done && (known || f.takeTable(t)) {
			f.tables[t] = f.table(t)
		}
	}
	return err
}

// inTurn probes the files that a scan has found. Those of a tenant that has used its time, and those that could not be probed yet, are found
// again by the next scan.
func (f *Finder) inTurn(found []candidate, seen map[int]looked, probe func(candidate) error) {
	spent := map[tenant.Tenant]time.Duration{}
	for _, one := range found {
		of, started := f.Host.Reads.Tenant(one.pid), time.Now()
		if spent[of] > f.tenantTime {
			delete(seen, one.pid)
			continue
		}
		err := probe(one)
		if reader.Unanswered(err) || errors.Is(err, host.ErrUnsafe) {
			delete(seen, one.pid)
		}
		f.problem(of, string(one.Path), err)
		spent[of] += time.Since(started)
	}
}

// takeTable takes a place for a table, if there is one for its tenant.
func (f *Finder) takeTable(t profiling.Table) bool {
	of := f.Host.Reads.Tenant(t.PID)
	err := f.tablePlaces.Take(of)
	if err != nil {
		f.problem(of, fmt.Sprintf("process %d", t.PID), fmt.Errorf("the limit is %d tables of OCALLs: %w", maxTables, err))
	}
	return err == nil
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
		f.users.silent(pid, err)
		return nil // it has ended, or is one of the kernel
	}
	maps, err := f.Host.Mappings(uint32(pid))
	if err != nil {
		f.users.silent(pid, err)
		return nil
	}
	f.users.note(pid, program, maps)
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
	if err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	one := &file{opened: opened, owner: f.Host.Reads.Tenant(pid), mapped: m.File, program: program, probed: map[uint64]bool{}}
	if err := f.add(id, one); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return one, nil
}

// add adds a file, if there is a place for its tenant.
func (f *Finder) add(id hostfs.FileID, one *file) error {
	if err := f.filePlaces.Take(one.owner); err != nil {
		return fmt.Errorf("the limit is %d files: %w", maxFiles, err)
	}
	f.files[id] = one
	return nil
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
			err = errors.Join(err, f.probe(pid, one, []uint64{c.Address}, true))
		}
	}
	err = errors.Join(err, f.probe(pid, one, addresses, false))
	one.done = !errors.Is(err, host.ErrUnsafe)
	return err
}

// mappedBy returns the processes that map a file that one of them has. The kernel knows them, also those that do not answer.
func (f *Finder) mappedBy(pid int, opened *os.File) ([]int, error) {
	page, err := reader.Of(f.Host.Reads, pid, func() ([]byte, error) {
		return unix.Mmap(int(opened.Fd()), 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_PRIVATE)
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Munmap(page) }() // it is not in use
	return profiling.MappedBy(f.Sampler, uint64(uintptr(unsafe.Pointer(&page[0]))))
}

// probe attaches to functions of a file that have no probe yet. A process has mapped the file.
func (f *Finder) probe(pid int, one *file, addresses []uint64, table bool) error {
	var fresh []uint64
	var sites []profiling.Function
	var errs []error
	for _, a := range addresses {
		if one.probed[a] {
			continue
		}
		fresh = append(fresh, a)
		if point, err := one.program.ProbePoint(a); err != nil {
			errs = append(errs, err)
		} else {
			sites = append(sites, profiling.Function{Offset: point.Offset, Table: table})
		}
	}
	if len(sites) > 0 {
		if err := f.users.answer(one.mapped, func() ([]int, error) { return f.mappedBy(pid, one.opened) }); err != nil {
			return errors.Join(append(errs, err)...) // the next look tries again
		}
	}
	for _, a := range fresh {
		one.probed[a] = true
	}
	for i := range sites {
		if err := f.functionPlaces.Take(one.owner); err != nil {
			errs = append(errs, fmt.Errorf("the limit is %d functions: %w", maxFunctions, err))
			sites = sites[:i]
			break
		}
	}
	if len(sites) == 0 {
		return errors.Join(errs...)
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
		f.problem(f.Host.Reads.Tenant(t.PID), string(m.Path), err)
		return !reader.Unanswered(err) && !errors.Is(err, host.ErrUnsafe)
	}
	f.problem(f.Host.Reads.Tenant(t.PID), fmt.Sprintf("process %d", t.PID), errors.New("its OCALL table is in no file"))
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
	return errors.Join(err, f.probe(t.PID, one, all, false))
}
