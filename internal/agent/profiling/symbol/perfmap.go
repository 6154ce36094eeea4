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

// perfMap is an open perf map, of which size bytes are read.
type perfMap struct {
	*os.File
	size int64
}

// openPerfMap opens /tmp/perf-PID.map of a process that has generated code. As perf does, it accepts only a regular file of the user of the process or
// of root: any user can create files in /tmp. No symbolic link leads out of the process's root.
func (t *Table) openPerfMap(p *Process) (perfMap, error) {
	if p.root == nil {
		return perfMap{}, os.ErrNotExist
	}
	return reader.Of(t.Reads, p.PID, func() (none perfMap, err error) {
		dir, err := hostfs.LocateIn(int(p.root.Fd()), "/tmp")
		if err != nil {
			return none, err
		}
		defer func() { _ = unix.Close(dir) }() // nothing was written
		name := fmt.Sprintf("perf-%d.map", p.names.pid)
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return none, &os.PathError{Op: "open", Path: name, Err: err}
		}
		file := os.NewFile(uintptr(fd), name)
		var info unix.Stat_t
		if err := unix.Fstat(fd, &info); err != nil {
			return none, errors.Join(err, file.Close())
		}
		if info.Mode&unix.S_IFMT != unix.S_IFREG || info.Uid != 0 && info.Uid != p.names.user {
			return none, errors.Join(errNotOurs, file.Close())
		}
		return perfMap{file, min(info.Size, maxPerfMap)}, nil
	})
}

// resolveProgram finds the names of code that a process has generated in its perf map.
func (t *Table) resolveProgram(p *Process, in perfMap, list []int, locations []Location, names []Name) {
	var all []uint64
	for _, i := range list {
		all = append(all, locations[i].Address)
	}
	addresses, index := sorted(all)
	found := symbols.PerfMap(io.NewSectionReader(t.host.Reader(uint32(p.PID), in.File), 0, in.size), addresses)
	for k, i := range list {
		if name := found[index[k]]; name != "" {
			names[i].System, names[i].Reason = name, ""
		}
	}
}
