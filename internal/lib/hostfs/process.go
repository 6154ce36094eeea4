// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of what is read about one process. The kernel writes less into all files but maps.
const (
	maxSmall  = 8 << 10
	maxCgroup = 64 << 10
	maxMaps   = 4 << 20
	maxArgs   = 4 << 10
)

// Processes lists the IDs of all processes in ascending order. The root must be that of /proc.
func (r Root) Processes() ([]int, error) { return r.numbers() }

// maxStat bounds /proc/stat, which has a number for each interrupt.
const maxStat = 1 << 20

// BootTime is when the machine started, in seconds since 1970. The root must be that of /proc.
func (r Root) BootTime() (uint64, error) {
	data, err := r.Read(maxStat, "stat")
	if err != nil {
		return 0, err
	}
	seconds, ok := parseBootTime(data)
	if !ok {
		return 0, r.malformed("stat")
	}
	return seconds, nil
}

func (r Root) malformed(elem ...string) error {
	return fmt.Errorf("reading %s: not in the form that proc(5) describes", r.Path(elem...))
}

// Process is the directory of a process or of one of its threads. Processes end at any time: an error of
// any method can mean that this one has.
type Process struct{ Root }

// Process returns a process of the root, which must be that of /proc.
func (r Root) Process(pid int) Process { return Process{Root{r.Path(strconv.Itoa(pid))}} }

// Self returns this process.
func (r Root) Self() Process { return Process{Root{r.Path("self")}} }

// Thread returns a thread of the process. Its files are those of a process.
func (p Process) Thread(tid int) Process { return Process{Root{p.Path("task", strconv.Itoa(tid))}} }

// Threads lists the IDs of the threads in ascending order.
func (p Process) Threads() ([]int, error) { return p.numbers("task") }

// Stat reads the file stat. That of a process adds up the times of its threads, which takes long for
// thousands of threads; that of its first thread has the same name and start.
func (p Process) Stat() (Stat, error) {
	data, err := p.Read(maxSmall, "stat")
	if err != nil {
		return Stat{}, err
	}
	s, ok := parseStat(data)
	if !ok {
		return Stat{}, p.malformed("stat")
	}
	return s, nil
}

// Comm is the name of the process, as it has chosen it: any bytes.
func (p Process) Comm() (string, error) {
	data, err := p.Read(maxSmall, "comm")
	return strings.TrimSuffix(string(data), "\n"), err
}

// Args returns the first arguments, at most the given number.
func (p Process) Args(most int) ([]string, error) {
	data, err := p.Read(maxArgs, "cmdline")
	return parseArgs(data, most), err
}

// Cgroup is the path of its control group in one hierarchy: that of a version 1 controller, or version 2 for "".
// It is empty when the process is in no such hierarchy.
func (p Process) Cgroup(controller string) (string, error) {
	data, err := p.Read(maxCgroup, "cgroup")
	return parseCgroup(data, controller), err
}

// Mappings calls f for each mapping of memory. The path is valid until f returns.
func (p Process) Mappings(f func(Mapping)) error {
	return within(unix.AT_FDCWD, p.Path("maps"), maxMaps, 0, func(data []byte) { eachMapping(data, f) })
}

// Schedstat reads the time on a CPU and the time ready without one. False means that this kernel does not
// account them.
func (p Process) Schedstat() (run, wait time.Duration, ok bool) {
	data, err := p.Read(maxSmall, "schedstat")
	if err != nil {
		return 0, 0, false
	}
	return parseSchedstat(data)
}

// Switches reads the numbers of context switches from the file status.
func (p Process) Switches() (voluntary, involuntary uint64, ok bool) {
	data, err := p.Read(maxSmall, "status")
	if err != nil {
		return 0, 0, false
	}
	return parseSwitches(data)
}

// WaitsIn is the kernel function that a thread sleeps in, empty where there is none or it is not told.
func (p Process) WaitsIn() string {
	data, err := p.Read(maxSmall, "wchan")
	if err != nil {
		return ""
	}
	return parseWchan(data)
}

// Executable is the path of the program as the kernel tells it: " (deleted)" follows that of a file that was removed.
func (p Process) Executable() (string, error) { return p.Link("exe") }

// Undeleted is a path of the kernel without the note that the file was removed.
func Undeleted(path string) string { return strings.TrimSuffix(path, " (deleted)") }

// File tells one file from another, and from itself before it was written.
type File struct {
	Device, Inode uint64
	Size          int64
	Modified      int64 // nanoseconds since 1970
}

// ExecutableFile identifies the file that the process runs, whatever its path means by now. A kernel thread has none.
func (p Process) ExecutableFile() (File, error) {
	path := p.Path("exe")
	var info unix.Stat_t
	if err := unix.Stat(path, &info); err != nil {
		return File{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return File{Device: info.Dev, Inode: info.Ino, Size: info.Size, Modified: info.Mtim.Nano()}, nil
}

// HasOpen tells whether one of the first open files of the process is what is looked for. The kernel names
// sockets and pipes too: "socket:[INODE]".
func (p Process) HasOpen(most int, is func(target string) bool) bool {
	names, _ := p.Names(most, "fd") // an error means that it has ended, or may not be looked at
	for _, name := range names {
		if target, err := p.Link("fd", name); err == nil && is(target) {
			return true
		}
	}
	return false
}
