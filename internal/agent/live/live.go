// SPDX-License-Identifier: Apache-2.0

// Package live finds the programs that run in Gramine or SCONE on this machine, and reads data of their processes: the manifest
// or the settings, the enclave's size, threads, open files and the allowed CPUs.
//
// It changes nothing, and does not evaluate the data. Each process is read with a deadline, because a process can delay the read.
package live

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/manifest"
	"github.com/teescope/teescope/internal/agent/tee"
	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/lib/watch"
)

const (
	// maxPrograms and maxProcesses bound the number of described programs, and of processes of each.
	maxPrograms, maxProcesses = 256, 256
	// maxFiles and maxThreads bound the number of open files and of threads that are read in each process.
	maxFiles, maxThreads = 1 << 16, 1024
	// maxAncestors bounds the number of ancestors between a child and the first process of its program.
	maxAncestors = 64
	// maxArgs is the number of arguments that identify the program: LOADER LIBPAL init|child APPLICATION.
	maxArgs = 4
)

// Machine has the roots below which the machine is read.
type Machine struct {
	tee.Roots
	Cgroup string
	Reads  *reader.Pool // nil reads without a deadline, for tests
}

// Program is one running program. Its manifest is read only for programs of Gramine, and its settings only for those of SCONE.
type Program struct {
	advise.Live
	Manifest string             // its path, as the process sees it
	Text     []byte             // of the manifest
	Settings map[string]string  // variables of the environment, for SCONE
	Err      error              // why manifest or settings are not known
	Gramine  *manifest.Versions // nil if not known

	first int
	app   string // as it is
}

// String names a program for a person who must choose one. It is printable.
func (p *Program) String() string { return fmt.Sprintf("%d %s (%s)", p.first, p.App, p.Runtime) }

// Finder inspects the processes of a machine.
type Finder struct {
	proc     hostfs.Root
	machine  Machine
	names    cgroup.Hierarchy
	reads    *reader.Pool
	settings map[string]bool
	topology topology
}

// New returns a finder. settings are the names of the environment variables that are read from programs in SCONE.
func New(m Machine, settings map[string]bool) *Finder {
	proc := hostfs.At(m.Proc)
	return &Finder{
		proc: proc, machine: m, names: cgroup.Naming(m.Cgroup), settings: settings, topology: readTopology(hostfs.At(m.Sys)), reads: m.Reads,
	}
}

// Find returns the programs, in the order of their first process. With a PID it returns only the program of that process.
func (f *Finder) Find(pid int) ([]Program, error) {
	pids, err := f.proc.Processes()
	if err != nil {
		return nil, fmt.Errorf("listing the processes: %w", err)
	}
	if pid == 0 {
		return f.among(pids, 0), nil
	}
	wanted, ok := f.look(pid)
	if !ok {
		return nil, nil
	}
	return f.among(pids, wanted.first), nil
}

// among returns the programs that these processes belong to. If first is not 0, it returns only the program whose first process
// is first.
func (f *Finder) among(pids []int, first int) []Program {
	var all []Program
	at := make(map[int]int) // the first process of a program: its index
	for _, p := range pids {
		s, ok := f.look(p)
		if !ok || first != 0 && s.first != first { // others do not replace it
			continue
		}
		i, known := at[s.first]
		if !known {
			if len(all) == maxPrograms {
				continue
			}
			i, at[s.first] = len(all), len(all)
			all = append(all, Program{first: s.first, app: s.app, Live: advise.Live{Runtime: string(s.runtime), App: text.Terminal(text.Label(s.app))}})
		}
		if len(all[i].Processes) < maxProcesses {
			all[i].Processes = append(all[i].Processes, advise.Process{PID: p})
		}
	}
	slices.SortFunc(all, func(a, b Program) int { return a.first - b.first })
	return all
}

// sight identifies the program of a process.
type sight struct {
	runtime teelabel.Runtime
	app     string
	first   int // the process that the user started
}

// look recognises a process of a program in Gramine or SCONE.
func (f *Finder) look(pid int) (sight, bool) {
	s, err := reader.Of(f.reads, pid, func() (sight, error) {
		_, runtime := f.machine.Look(uint32(pid))
		return sight{runtime: runtime, first: pid}, nil
	})
	if err != nil {
		return sight{}, false
	}
	switch s.runtime {
	case teelabel.GramineSGX, teelabel.GramineDirect:
		s.first, s.app = f.first(pid)
		return s, s.app != ""
	case teelabel.SCONE:
		args, _ := f.args(pid)
		for _, a := range args { // the loader can be named before the program
			if s.app = path.Base(a); !strings.HasPrefix(s.app, "ld-scone-") {
				break
			}
		}
		return s, s.app != ""
	}
	return sight{}, false
}

func (f *Finder) args(pid int) ([]string, error) {
	return reader.Of(f.reads, pid, func() ([]string, error) { return f.proc.Process(pid).Args(maxArgs) })
}

// first returns the process that started a program of Gramine, and the name of the application. The command lines of Gramine's
// child processes do not contain the name.
func (f *Finder) first(pid int) (first int, app string) {
	for range maxAncestors {
		args, err := f.args(pid)
		if err != nil || len(args) < maxArgs || args[2] != "init" && args[2] != "child" {
			return 0, ""
		}
		if args[2] == "init" {
			return pid, args[3]
		}
		stat, err := f.proc.Process(pid).Thread(pid).Stat()
		if err != nil || stat.Parent == 0 {
			return 0, ""
		}
		pid = stat.Parent
	}
	return 0, ""
}

// Read adds the data of a program's processes.
func (f *Finder) Read(p *Program) {
	if w, ok := watch.Look(f.proc, f.names, f.reads, p.first); ok {
		p.Workload = workload.Identify(cgroup.Names(w.Cgroup), w.Comm).Name
	}
	used := placement{topology: f.topology}
	for i := range p.Processes {
		one := &p.Processes[i]
		read, err := reader.Of(f.reads, one.PID, func() (advise.Process, error) {
			return f.process(one.PID, teelabel.Runtime(p.Runtime) != teelabel.SCONE), nil
		})
		if err == nil {
			*one = read
		}
		masks, err := reader.Of(f.reads, one.PID, func() ([][]int, error) { return f.allowed(one.PID), nil })
		if err == nil {
			used.add(masks)
		}
	}
	used.into(&p.Live)
	f.configured(p)
}

// process reads the figures of one process.
func (f *Finder) process(pid int, gramine bool) advise.Process {
	p := f.proc.Process(pid)
	threads, _ := p.Threads(0)
	files, _ := p.Names(maxFiles, "fd") // only root may list those of others
	read := advise.Process{PID: pid, Threads: len(threads), Files: len(files)}
	if gramine {
		read.Pipes = pipes(p, files)
	}
	var low, high uint64
	_ = p.Mappings(func(m hostfs.Mapping) {
		if !tee.IsEnclaveDevice(string(m.Path)) {
			return
		}
		if low == 0 || m.Start < low {
			low = m.Start
		}
		high = max(high, m.End)
	})
	read.Enclave = high - low
	return read
}

// allowed returns the CPUs that each thread may run on.
func (f *Finder) allowed(pid int) [][]int {
	p := f.proc.Process(pid)
	threads, _ := p.Threads(maxThreads)
	var all [][]int
	for _, tid := range threads {
		if cpus, ok := p.Thread(tid).AllowedCPUs(); ok {
			all = append(all, cpus)
		}
	}
	return all
}
