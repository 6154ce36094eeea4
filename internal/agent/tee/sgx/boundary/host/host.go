// SPDX-License-Identifier: Apache-2.0

// Package host reads the data of processes that the mechanisms at the enclave boundary need: the program that each runs, its
// files as the process sees them, and the name of its workload. It does not parse files that package hostfs parses, and does not
// depend on enclaves.
package host

import (
	"bytes"
	"errors"
	"time"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Processes are the processes of a machine. Everything that a process can delay is read by the pool.
type Processes struct {
	Proc  hostfs.Root
	Reads *reader.Pool
	Ahead *Ahead // runs reads outside of the lock of the backend; nil runs them at once
	// Inode returns a number of the inode that is mapped at an address of this process. For an overlay it is the inode of the
	// file below. Inode is nil on kernels that do not report this. An error means that the kernel may report it later
	// (reader.Unanswered).
	Inode func(address uint64) (uint64, error)
	// Pods completes the identity of a workload in a pod. It may be nil. A process that is found before the name of its pod is
	// known keeps the UID. This is rare, because a pod has a name before it has a process.
	Pods  func(*workload.Identity) bool
	names cgroup.Hierarchy // names workloads as the system collector does
}

// New returns the processes of a /proc. Workloads are named by the control groups that are mounted below a root.
func New(proc, cgroups string, reads *reader.Pool) Processes {
	return Processes{Proc: hostfs.At(proc), Reads: reads, names: cgroup.Naming(cgroups)}
}

// Of returns one process.
func (h Processes) Of(tgid uint32) hostfs.Process { return h.Proc.Process(int(tgid)) }

// living returns a process, or one of its threads if the first has ended.
func (h Processes) living(tgid uint32) hostfs.Process {
	p, _ := h.Proc.Living(int(tgid)) // reads of one that has ended fail
	return p
}

// Runs reports whether a process exists. It reads no file that the process can block.
func (h Processes) Runs(tgid uint32) bool {
	stat, err := h.Of(tgid).Thread(int(tgid)).Stat()
	return err == nil && !stat.Ended()
}

// Program identifies the program that a process runs now. The start time differs for another process with the
// same ID. The executable differs for another program of the same process, and the stack for another execution of it: the
// kernel chooses at random where the stack begins.
type Program struct {
	Start time.Duration // since the machine started
	Exe   hostfs.FileID
	Stack uint64 // 0 if it may not be read
}

// Same reports whether p is the same process with the same program as other. It may have executed this program again.
func (p Program) Same(other Program) bool { return p.Start == other.Start && p.Exe == other.Exe }

// ErrEnded means that a process has ended.
var ErrEnded = errors.New("the process has ended")

// Program returns the program that a process runs, or ErrEnded. Another error means that the process does not answer.
func (h Processes) Program(tgid uint32) (Program, error) {
	first, err := h.Of(tgid).Thread(int(tgid)).Stat()
	if err != nil || first.Ended() {
		return Program{}, ErrEnded
	}
	process, stat := h.living(tgid), first
	if process != h.Of(tgid) {
		if stat, err = process.Stat(); err != nil {
			return Program{}, ErrEnded
		}
	}
	return reader.Of(h.Reads, int(tgid), func() (Program, error) {
		exe, err := process.ExecutableFile()
		if err != nil {
			return Program{}, ErrEnded // or a kernel thread
		}
		return Program{first.Started, exe.FileID, stat.Stack}, nil
	})
}

// Identify returns the identity of a process's workload. It is empty if it cannot be read because the process has
// ended. An error means that the process does not answer: a loader has the name of its application only in its arguments.
func (h Processes) Identify(tgid uint32) (workload.Identity, error) {
	comm, err := watch.Program(h.Proc, h.Reads, int(tgid))
	if reader.Unanswered(err) {
		return workload.Identity{}, err
	}
	group, _ := h.Of(tgid).Cgroup(h.names.Controller())
	id := workload.Identify(cgroup.Names(group), comm)
	if h.Pods != nil {
		h.Pods(&id)
	}
	return id, nil
}

// errUnnamed means that a process cannot be compared with rules: it has ended or does not answer.
var errUnnamed = errors.New("the process cannot be named")

// Described returns the properties of a process that rules compare.
func (h Processes) Described(tgid uint32) (watch.Process, error) {
	is, ok := watch.Look(h.Proc, h.names, h.Reads, int(tgid))
	if !ok {
		return watch.Process{}, errUnnamed
	}
	is.Workload = workload.Identify(cgroup.Names(is.Cgroup), is.Comm).Name
	return is, nil
}

// Executable returns the path of the program of a process as its mappings name it.
func (h Processes) Executable(tgid uint32) (string, error) { return h.living(tgid).Executable() }

// Mappings returns the files that a process has mapped.
func (h Processes) Mappings(tgid uint32) ([]hostfs.Mapping, error) {
	return reader.Of(h.Reads, int(tgid), func() (all []hostfs.Mapping, err error) {
		err = h.living(tgid).Mappings(func(m hostfs.Mapping) {
			if m.IsFile() {
				m.Path = bytes.Clone(m.Path) // it is valid only during this call
				all = append(all, m)
			}
		})
		return all, err
	})
}

// VDSO returns the address of the kernel's vDSO in a process.
func (h Processes) VDSO(tgid uint32) (uint64, error) {
	return reader.Of(h.Reads, int(tgid), func() (uint64, error) {
		start, _, err := h.living(tgid).VDSO()
		return start, err
	})
}
