// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/symbols"
)

// Limits of perf maps.
const (
	maxPerfMap = 128 << 20 // bytes that are read
	maxRoots   = 256
)

// perfNames is what is needed to find the perf map of a process after its end.
type perfNames struct {
	pid  int // in the namespace of the process
	user uint32
}

// errNotOurs means that a perf map is not written by its process.
var errNotOurs = errors.New("the perf map belongs to another user")

// pinRoot keeps the root directory of a process that has generated code, because its perf map is written there.
func (t *Table) pinRoot(p *Process) {
	pinned := 0
	for _, other := range t.processes {
		if other.root != nil {
			pinned++
		}
	}
	if p.root != nil || pinned >= maxRoots {
		return
	}
	process := t.host.Of(uint32(p.PID))
	user, ok := process.User()
	pid, known := process.NamespacePID()
	if !ok || !known {
		return
	}
	root, err := reader.Of(t.Reads, p.PID, func() (*os.File, error) {
		return os.OpenFile(process.Path("root"), unix.O_PATH|unix.O_DIRECTORY, 0)
	})
	if err != nil {
		return // it has ended
	}
	p.root, p.names = root, perfNames{pid, user}
}

// openPerfMap opens /tmp/perf-PID.map of a process. As perf does, it accepts only a regular file of the user of the process or
// of root: any user can create files in /tmp. No symbolic link leads out of the process's root.
func (t *Table) openPerfMap(p *Process) (*os.File, error) {
	return reader.Of(t.Reads, p.PID, func() (*os.File, error) {
		dir, err := hostfs.LocateIn(int(p.root.Fd()), "/tmp")
		if err != nil {
			return nil, err
		}
		defer func() { _ = unix.Close(dir) }() // nothing was written
		name := fmt.Sprintf("perf-%d.map", p.names.pid)
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		file := os.NewFile(uintptr(fd), name)
		var info unix.Stat_t
		if err := unix.Fstat(fd, &info); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if info.Mode&unix.S_IFMT != unix.S_IFREG || info.Uid != 0 && info.Uid != p.names.user {
			return nil, errors.Join(errNotOurs, file.Close())
		}
		return file, nil
	})
}

// perfMap opens the perf map of a process, and returns how many bytes of it are read. It returns nil if there is none.
func perfMap(t *Table, p *Process) (file *os.File, size uint64) {
	if p.root == nil {
		return nil, 0
	}
	file, err := t.openPerfMap(p)
	if err != nil {
		return nil, 0
	}
	var info unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &info); err != nil {
		_ = file.Close() // nothing was written
		return nil, 0
	}
	return file, uint64(min(max(info.Size, 0), maxPerfMap))
}

// resolveProgram finds the names of code that a process has generated in its perf map, which may be nil.
func (t *Table) resolveProgram(p *Process, file *os.File, size int64, list []int, locations []Location, names []Name) {
	for _, i := range list {
		names[i].Reason = noPerfMap
	}
	if file == nil {
		return
	}
	var all []uint64
	for _, i := range list {
		all = append(all, locations[i].Address)
	}
	addresses, index := sorted(all)
	found := symbols.PerfMap(io.NewSectionReader(t.host.Reader(uint32(p.PID), file), 0, size), addresses)
	for k, i := range list {
		if name := found[index[k]]; name != "" {
			names[i].System, names[i].Reason = name, ""
		}
	}
}
