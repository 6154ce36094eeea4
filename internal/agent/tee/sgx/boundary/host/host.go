// SPDX-License-Identifier: Apache-2.0

// Package host reads what the mechanisms at the enclave boundary need of processes: the program that each runs,
// its files as the process sees them, and the name of its workload. It refuses to parse what package hostfs
// parses, and to know what an enclave is.
package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Processes are the processes of a machine.
type Processes struct {
	Proc  hostfs.Root
	names cgroup.Hierarchy // names workloads as the system collector does
}

// New returns the processes of a /proc. Workloads are named by the control groups that are mounted below a root.
func New(proc, cgroups string) Processes { return Processes{hostfs.At(proc), cgroup.Naming(cgroups)} }

// Of returns one process.
func (h Processes) Of(tgid uint32) hostfs.Process { return h.Proc.Process(int(tgid)) }

// Program identifies the program that a process runs now. The start time differs for another process with the
// same ID. The executable differs for another program of the same process.
type Program struct {
	Start time.Duration // since the machine started
	Exe   hostfs.FileID
}

// Program returns what a process runs. It returns false if the process has ended.
func (h Processes) Program(tgid uint32) (Program, bool) {
	process := h.Of(tgid)
	stat, err := process.Stat()
	if err != nil || stat.Ended() {
		return Program{}, false
	}
	exe, err := process.ExecutableFile()
	if err != nil {
		return Program{}, false // a kernel thread, or a process that is ending
	}
	return Program{stat.Started, exe.FileID}, true
}

// Identify returns the identity of a process's workload. It is empty if it cannot be read because the process has
// ended.
func (h Processes) Identify(tgid uint32) workload.Identity {
	comm, _ := h.Of(tgid).Comm()
	group, _ := h.Of(tgid).Cgroup(h.names.Controller())
	return workload.Identify(cgroup.Names(group), comm)
}

// Matches reports whether one of the rules names a process.
func (h Processes) Matches(rules []watch.Rule, tgid uint32) bool {
	is, ok := watch.Look(h.Proc, h.names, int(tgid))
	return ok && watch.Matches(rules, is)
}

// Mappings returns the files that a process has mapped.
func (h Processes) Mappings(tgid uint32) (all []hostfs.Mapping, err error) {
	err = h.Of(tgid).Mappings(func(m hostfs.Mapping) {
		if m.IsFile() {
			m.Path = bytes.Clone(m.Path) // it is valid only during this call
			all = append(all, m)
		}
	})
	return all, err
}

// VDSO returns the address range of the kernel's vDSO in a process.
func VDSO(p hostfs.Process) (start, end uint64, err error) {
	err = p.Mappings(func(m hostfs.Mapping) {
		if string(m.Path) == "[vdso]" {
			start, end = m.Start, m.End
		}
	})
	if err == nil && end <= start {
		err = fmt.Errorf("%s: no vDSO", p.Path("maps"))
	}
	return start, end, err
}

// errGone means that a mapped file no longer exists under its name.
var errGone = errors.New("the file was deleted or replaced since it was loaded")

// Open opens a file that a process has mapped, as the process sees it. The executable is opened through its link
// in /proc, so that it may have been moved or deleted.
func (h Processes) Open(tgid uint32, mapped string) (*os.File, hostfs.FileID, error) {
	path, flags := h.Of(tgid).Path("exe"), os.O_RDONLY
	if exe, err := h.Of(tgid).Executable(); err != nil || exe != mapped {
		if hostfs.Undeleted(mapped) != mapped {
			return nil, hostfs.FileID{}, errGone
		}
		// The name may now belong to a FIFO, or to a link that leads out of the process's root.
		path, flags = h.Of(tgid).Path("root", mapped), flags|unix.O_NONBLOCK|unix.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, hostfs.FileID{}, err
	}
	var info unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &info); err != nil || info.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = f.Close()
		return nil, hostfs.FileID{}, errGone
	}
	return f, hostfs.FileID{Device: info.Dev, Inode: info.Ino}, nil
}
