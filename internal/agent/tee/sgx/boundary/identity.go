// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"errors"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/workload"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/cgroup"
)

// hostProcesses reads /proc.
type hostProcesses struct {
	proc  hostfs.Root
	names cgroup.Hierarchy // that names workloads, so that they have the names that the system collector gives them
}

func (h hostProcesses) of(tgid uint32) hostfs.Process { return h.proc.Process(int(tgid)) }

// fileID tells one file from another.
type fileID struct{ dev, ino uint64 }

func idOf(info *unix.Stat_t) fileID { return fileID{info.Dev, info.Ino} }

// programOf identifies the program that a process runs now: another process with its ID has another start time,
// and another program of the same process another executable.
type programOf struct {
	start time.Duration // after the start of the machine
	exe   fileID
}

func (h hostProcesses) program(tgid uint32) (programOf, bool) {
	process := h.of(tgid)
	stat, err := process.Stat()
	if err != nil || stat.Ended() {
		return programOf{}, false
	}
	exe, err := process.ExecutableFile()
	if err != nil {
		return programOf{}, false // a kernel thread, or about to end
	}
	return programOf{stat.Started, fileID{exe.Device, exe.Inode}}, true
}

// identify names the workload of a process. What cannot be read, because it has ended, is empty.
func (h hostProcesses) identify(tgid uint32) workload.Identity {
	comm, _ := h.of(tgid).Comm()
	group, _ := h.of(tgid).Cgroup(h.names.Controller())
	return workload.Identify(cgroup.Names(group), comm)
}

// mapping is a part of a file in the memory of a process.
type mapping struct {
	start, end, offset uint64
	executable         bool
	path               string
}

// mappings reads the files that a process has mapped.
func (h hostProcesses) mappings(tgid uint32) (all []mapping, err error) {
	err = h.of(tgid).Mappings(func(m hostfs.Mapping) {
		if m.IsFile() {
			all = append(all, mapping{m.Start, m.End, m.Offset, m.Executable, string(m.Path)})
		}
	})
	return all, err
}

// errGone is for a mapped file that is no more where it was.
var errGone = errors.New("the file was deleted or replaced since it was loaded")

// open opens a file that a process has mapped, as the process sees it. The executable is opened as such, so
// that it need not be where it was.
func (h hostProcesses) open(tgid uint32, mapped string) (*os.File, fileID, error) {
	path, flags := h.of(tgid).Path("exe"), os.O_RDONLY
	if exe, err := os.Readlink(path); err != nil || exe != mapped {
		if strings.HasSuffix(mapped, " (deleted)") {
			return nil, fileID{}, errGone
		}
		// It may be a FIFO by now, or a link that leads out of the process's root.
		path, flags = h.of(tgid).Path("root", mapped), flags|unix.O_NONBLOCK|unix.O_NOFOLLOW
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, fileID{}, err
	}
	var info unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &info); err != nil || info.Mode&unix.S_IFMT != unix.S_IFREG {
		_ = f.Close()
		return nil, fileID{}, errGone
	}
	return f, idOf(&info), nil
}
