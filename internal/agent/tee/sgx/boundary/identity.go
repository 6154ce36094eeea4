// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/workload"
)

// hostProcesses reads /proc.
type hostProcesses struct {
	proc       string
	controller string // of the cgroup v1 hierarchy that names workloads; empty is version 2
}

// hierarchy chooses the cgroup hierarchy as the system collector does, so that workloads have the same names:
// version 2 where it is mounted as such, else the first controller that container runtimes use.
func hierarchy(root string) string {
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	}
	if !exists("cgroup.controllers") {
		for _, name := range []string{"pids", "memory", "cpu", "devices"} {
			if exists(name + "/cgroup.procs") {
				return name
			}
		}
	}
	return ""
}

func (h hostProcesses) of(tgid uint32, name string) string {
	return filepath.Join(h.proc, strconv.FormatUint(uint64(tgid), 10), name)
}

// fileID tells one file from another.
type fileID struct{ dev, ino uint64 }

func idOf(info *unix.Stat_t) fileID { return fileID{info.Dev, info.Ino} }

// programOf identifies the program that a process runs now: another process with its ID has another start time,
// and another program of the same process another executable.
type programOf struct {
	start uint64 // in clock ticks since boot
	exe   fileID
}

func (h hostProcesses) program(tgid uint32) (programOf, bool) {
	data, err := readUpTo(h.of(tgid, "stat"), 4<<10)
	end := bytes.LastIndexByte(data, ')')
	if err != nil || end < 0 {
		return programOf{}, false
	}
	fields := bytes.Fields(data[end+1:])
	const state, startTime = 0, 22 - 3 // the first of these is field 3 of proc_pid_stat(5)
	if len(fields) <= startTime || string(fields[state]) == "Z" || string(fields[state]) == "X" {
		return programOf{}, false
	}
	var info unix.Stat_t
	start, err := strconv.ParseUint(string(fields[startTime]), 10, 64)
	if err != nil || unix.Stat(h.of(tgid, "exe"), &info) != nil {
		return programOf{}, false // a kernel thread, or about to end
	}
	return programOf{start, idOf(&info)}, true
}

// identify names the workload of a process.
func (h hostProcesses) identify(tgid uint32) workload.Identity {
	comm, _ := readUpTo(h.of(tgid, "comm"), 64)
	cgroups, _ := readUpTo(h.of(tgid, "cgroup"), 64<<10)
	return workload.Identify(cgroupNames(string(cgroups), h.controller), strings.TrimSuffix(string(comm), "\n"))
}

// cgroupNames takes the names of the cgroup, leaf first, from /proc/PID/cgroup (lines ID:CONTROLLERS:PATH).
func cgroupNames(lines, controller string) []string {
	for line := range strings.Lines(lines) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 || controller == "" && parts[0] != "0" ||
			controller != "" && !slices.Contains(strings.Split(parts[1], ","), controller) {
			continue
		}
		names := strings.FieldsFunc(parts[2], func(r rune) bool { return r == '/' })
		slices.Reverse(names)
		return names
	}
	return nil
}

// mapping is a part of a file in the memory of a process.
type mapping struct {
	start, end, offset uint64
	executable         bool
	path               string
}

// mappings reads the files that a process has mapped.
func (h hostProcesses) mappings(tgid uint32) ([]mapping, error) {
	const most = 4 << 20
	data, err := readUpTo(h.of(tgid, "maps"), most)
	if err != nil {
		return nil, err
	}
	var all []mapping
	for line := range strings.Lines(string(data)) {
		if m, ok := parseMapping(strings.TrimSuffix(line, "\n")); ok {
			all = append(all, m)
		}
	}
	return all, nil
}

// parseMapping reads a line START-END RIGHTS OFFSET DEVICE INODE PATH of proc_pid_maps(5).
func parseMapping(line string) (m mapping, ok bool) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 6 {
		return m, false
	}
	from, to, found := strings.Cut(fields[0], "-")
	m.path = strings.TrimLeft(fields[5], " ")
	if !found || !strings.HasPrefix(m.path, "/") {
		return m, false
	}
	var errs [3]error
	m.start, errs[0] = strconv.ParseUint(from, 16, 64)
	m.end, errs[1] = strconv.ParseUint(to, 16, 64)
	m.offset, errs[2] = strconv.ParseUint(fields[2], 16, 64)
	m.executable = len(fields[1]) > 2 && fields[1][2] == 'x'
	return m, errors.Join(errs[:]...) == nil
}

// errGone is for a mapped file that is no more where it was.
var errGone = errors.New("the file was deleted or replaced since it was loaded")

// open opens a file that a process has mapped, as the process sees it. The executable is opened as such, so
// that it need not be where it was.
func (h hostProcesses) open(tgid uint32, mapped string) (*os.File, fileID, error) {
	path, flags := h.of(tgid, "exe"), os.O_RDONLY
	if exe, err := os.Readlink(path); err != nil || exe != mapped {
		if strings.HasSuffix(mapped, " (deleted)") {
			return nil, fileID{}, errGone
		}
		// It may be a FIFO by now, or a link that leads out of the process's root.
		path, flags = filepath.Join(h.of(tgid, "root"), mapped), flags|unix.O_NONBLOCK|unix.O_NOFOLLOW
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

func readUpTo(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// pids lists the processes there are.
func (h hostProcesses) pids() ([]uint32, error) {
	dir, err := os.Open(h.proc)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	var pids []uint32
	for _, name := range names {
		if pid, err := strconv.ParseUint(name, 10, 32); err == nil {
			pids = append(pids, uint32(pid))
		}
	}
	return pids, err
}

// exe is the path of a process's executable as its mappings have it.
func (h hostProcesses) exe(tgid uint32) string {
	path, _ := os.Readlink(h.of(tgid, "exe"))
	return path
}
