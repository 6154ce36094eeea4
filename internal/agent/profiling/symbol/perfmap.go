// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/executable"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
)

// Limits of perf maps.
const (
	maxPerfMap  = 128 << 20 // bytes that are read
	maxPerfLine = executable.LongestSymbol + 64
	maxMatches  = 1 << 25 // lines that cover an address, over all addresses
	maxRoots    = 256
	maxStatus   = 16 << 10
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
	status, err := process.Read(maxStatus, "status")
	pid := namespacePID(status)
	if !ok || err != nil || pid == 0 {
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

// namespacePID returns the ID that a process has in its own namespace, the last number of the line NSpid of
// proc_pid_status(5), or 0.
func namespacePID(status []byte) int {
	for line := range bytes.Lines(status) {
		if rest, found := bytes.CutPrefix(line, []byte("NSpid:")); found {
			fields := bytes.Fields(rest)
			if len(fields) == 0 {
				return 0
			}
			pid, err := strconv.ParseUint(string(fields[len(fields)-1]), 10, 31)
			if err != nil {
				return 0
			}
			return int(pid)
		}
	}
	return 0
}

// openPerfMap opens /tmp/perf-PID.map of a process. As perf does, it accepts only a regular file of the user of the process or
// of root: any user can create files in /tmp. No symbolic link leads out of the process's root.
func (t *Table) openPerfMap(p *Process) (*os.File, error) {
	return reader.Of(t.Reads, p.PID, func() (*os.File, error) {
		name := fmt.Sprintf("tmp/perf-%d.map", p.names.pid)
		fd, err := unix.Openat2(int(p.root.Fd()), name, &unix.OpenHow{
			Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_NOCTTY | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
		})
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

// resolveProgram finds the names of code that a process has generated.
func (t *Table) resolveProgram(p *Process, list []int, locations []Location, names []Name) {
	for _, i := range list {
		names[i].Reason = NoPerfMap
	}
	if p.root == nil {
		return
	}
	file, err := t.openPerfMap(p)
	if err != nil {
		return
	}
	defer file.Close()
	var all []uint64
	for _, i := range list {
		all = append(all, locations[i].Address)
	}
	addresses, index := sorted(all)
	found := namesOfPerfMap(io.NewSectionReader(t.host.Reader(uint32(p.PID), file), 0, maxPerfMap), addresses)
	for k, i := range list {
		if name := found[index[k]]; name != "" {
			names[i].System, names[i].Reason = name, ""
		}
	}
}

// namesOfPerfMap returns the names of ascending addresses in lines "START SIZE NAME", where START and SIZE are hexadecimal
// (tools/perf/Documentation/jit-interface.txt). A later line replaces an earlier one, because code is replaced. What comes
// after a reading error is missing.
func namesOfPerfMap(in io.Reader, addresses []uint64) []string {
	names := make([]string, len(addresses))
	matches := 0
	lines := bufio.NewReaderSize(in, 1<<20)
	for {
		line, err := lines.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		start, size, name, ok := parsePerfLine(line)
		if ok && !long && (err == nil || errors.Is(err, io.EOF)) {
			at, _ := slices.BinarySearch(addresses, start)
			for ; at < len(addresses) && addresses[at]-start < size; at++ {
				names[at] = name
				matches++
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) { // the rest of a line that is too long
			_, err = lines.ReadSlice('\n')
		}
		if err != nil || matches > maxMatches {
			return names
		}
	}
}

func parsePerfLine(line []byte) (start, size uint64, name string, ok bool) {
	if len(line) > maxPerfLine {
		return 0, 0, "", false
	}
	first, rest, ok1 := strings.Cut(strings.TrimRight(string(line), "\r\n"), " ")
	second, name, ok2 := strings.Cut(rest, " ")
	start, err1 := strconv.ParseUint(strings.TrimPrefix(first, "0x"), 16, 64)
	size, err2 := strconv.ParseUint(strings.TrimPrefix(second, "0x"), 16, 64)
	return start, size, name, ok1 && ok2 && err1 == nil && err2 == nil && name != ""
}
