// SPDX-License-Identifier: Apache-2.0

// Package host looks at processes as the mechanisms at the enclave boundary need it: which program each runs, its files as
// it sees them, and what its workload is called. It refuses to parse what package hostfs parses, and to know what an
// enclave is.
package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
	"github.com/teescope/teescope/internal/lib/watch"
)

// Processes are those of a machine.
type Processes struct {
	Proc  hostfs.Root
	names cgroup.Hierarchy // that names workloads, so that they have the names that the system collector gives them
}

// New reads the processes of a /proc, and names workloads by the control groups that are mounted below a root.
func New(proc, cgroups string) Processes { return Processes{hostfs.At(proc), cgroup.Naming(cgroups)} }

// Of is one process.
func (h Processes) Of(tgid uint32) hostfs.Process { return h.Proc.Process(int(tgid)) }

// FileID tells one file from another.
type FileID struct{ Device, Inode uint64 }

// Program identifies the program that a process runs now: another process with its ID has another start time,
// and another program of the same process another executable.
type Program struct {
	Start time.Duration // after the start of the machine
	Exe   FileID
}

// Program tells what a process runs; false when it has ended.
func (h Processes) Program(tgid uint32) (Program, bool) {
	process := h.Of(tgid)
	stat, err := process.Stat()
	if err != nil || stat.Ended() {
		return Program{}, false
	}
	exe, err := process.ExecutableFile()
	if err != nil {
		return Program{}, false // a kernel thread, or about to end
	}
	return Program{stat.Started, FileID{exe.Device, exe.Inode}}, true
}

// Identify names the workload of a process. What cannot be read, because it has ended, is empty.
func (h Processes) Identify(tgid uint32) workload.Identity {
	comm, _ := h.Of(tgid).Comm()
	group, _ := h.Of(tgid).Cgroup(h.names.Controller())
	return workload.Identify(cgroup.Names(group), comm)
}

// Matches tells whether one of the rules names a process.
func (h Processes) Matches(rules []watch.Rule, tgid uint32) bool {
	is, ok := watch.Look(h.Proc, h.names, int(tgid))
	return ok && watch.Matches(rules, is)
}

// Mapping is a part of a file in the memory of a process.
type Mapping struct {
	Start, End, Offset uint64
	Executable         bool
	Path               string
}

// Mappings reads the files that a process has mapped.
func (h Processes) Mappings(tgid uint32) (all []Mapping, err error) {
	err = h.Of(tgid).Mappings(func(m hostfs.Mapping) {
		if m.IsFile() {
			all = append(all, Mapping{m.Start, m.End, m.Offset, m.Executable, string(m.Path)})
		}
	})
	return all, err
}

// VDSO is where a process has the kernel's vDSO.
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

// errGone says that a mapped file is no longer where it was.
var errGone = errors.New("the file was deleted or replaced since it was loaded")

// Open opens a file that a process has mapped, as the process sees it. The executable is opened as such, so
// that it need not be where it was.
func (h Processes) Open(tgid uint32, mapped string) (*os.File, FileID, error) {
	path, flags := h.Of(tgid).Path("exe"), os.O_RDONLY
	if exe, err := os.Readlink(path); err != nil || exe != mapped {
		if strings.HasSuffix(mapped, " (deleted)") {
			return nil, FileID{}, errGone
		}
		// It may be a FIFO by now, or a link that leads out of the process's root.
		path, flags = h.Of(tgid).Path("root", mapped), flags|unix.O_NONBLOCK|unix.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, FileID{}, err
	}
	var info unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &info); err != nil || info.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = f.Close()
		return nil, FileID{}, errGone
	}
	return f, FileID{info.Dev, info.Ino}, nil
}
