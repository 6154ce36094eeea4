// SPDX-License-Identifier: Apache-2.0

package tee

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds of what is read of one process.
const (
	maxStat  = 4 << 10
	maxArgs  = 4 << 10
	maxMaps  = 4 << 20
	maxFiles = 256 // open files
)

// process tells one process and program from the next with the same ID.
type process struct {
	start uint64 // in clock ticks since boot
	comm  string
}

func (r Roots) of(tgid uint32, parts ...string) string {
	return filepath.Join(append([]string{r.Proc, strconv.FormatUint(uint64(tgid), 10)}, parts...)...)
}

// started is when the process started, after the machine did. USER_HZ is 100 on x86.
func (p process) started() time.Duration {
	const tick = time.Second / 100
	return time.Duration(min(p.start, math.MaxInt64/uint64(tick))) * tick
}

// process reads who has the ID now. The first thread's own stat is read: that of the process adds up
// the times of all threads, which takes long where there are thousands.
func (r Roots) process(tgid uint32) (process, bool) {
	data, err := readUpTo(r.of(tgid, "task", strconv.FormatUint(uint64(tgid), 10), "stat"), maxStat)
	if err != nil {
		return process{}, false
	}
	return parseStat(data)
}

// parseStat reads the name and the start time, fields 2 and 22 of proc_pid_stat(5). The name may hold
// anything, parentheses and newlines too.
func parseStat(data []byte) (process, bool) {
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')')
	if open < 0 || end < open {
		return process{}, false
	}
	fields := bytes.Fields(data[end+1:])
	const startTime = 22 - 3 // the first of these is field 3
	if len(fields) <= startTime {
		return process{}, false
	}
	start, err := strconv.ParseUint(string(fields[startTime]), 10, 64)
	return process{start: start, comm: string(data[open+1 : end])}, err == nil
}

// look finds out whether a process has an enclave, and its runtime. What cannot be read, because the
// process has ended or privileges are missing, says nothing.
func (r Roots) look(tgid uint32) finding {
	c := clues{}
	exe, _ := os.Readlink(r.of(tgid, "exe"))
	c.exe = undeleted(exe)
	cmdline, _ := readUpTo(r.of(tgid, "cmdline"), maxArgs)
	c.args = parseArgs(cmdline)
	enclave := false
	if maps, err := os.Open(r.of(tgid, "maps")); err == nil {
		eachMapping(io.LimitReader(maps, maxMaps), func(path []byte) {
			enclave = enclave || isNode(string(path))
			c.mapped(string(path))
		})
		_ = maps.Close()
	}
	// Between opening the device and mapping an enclave there are milliseconds at most, but some
	// processes only hand the device on. Listing files is dear, so only where there is a driver.
	if !enclave && r.hasSGX() {
		enclave = r.opensNode(tgid)
	}
	return finding{enclave: enclave, runtime: c.runtime()}
}

// parseArgs splits a command line at its NUL bytes.
func parseArgs(cmdline []byte) []string {
	const most = 8 // runtimes are told by the first few
	args := strings.SplitN(strings.TrimSuffix(string(cmdline), "\x00"), "\x00", most+1)
	return args[:min(len(args), most)]
}

// lineBuffers hold one line each; a path has 4096 bytes, and escaping makes four of one.
var lineBuffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// eachMapping calls f with the path of each mapping of /proc/PID/maps that has one, proc_pid_maps(5):
// five fields, then the path, which may contain blanks.
func eachMapping(maps io.Reader, f func(path []byte)) {
	in := lineBuffers.Get().(*bufio.Reader)
	in.Reset(maps)
	defer func() {
		in.Reset(nil)
		lineBuffers.Put(in)
	}()
	last := []byte{}
	for {
		line, err := in.ReadSlice('\n')
		if len(line) > 0 && !errors.Is(err, bufio.ErrBufferFull) {
			// A library is mapped several times in a row.
			if path := mappedPath(line); len(path) > 0 && !bytes.Equal(path, last) {
				f(path)
				last = append(last[:0], path...)
			}
		}
		for errors.Is(err, bufio.ErrBufferFull) { // no line that the kernel writes: skip the rest of it
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			return
		}
	}
}

func mappedPath(line []byte) []byte {
	rest := bytes.TrimSuffix(line, []byte("\n"))
	for range 5 {
		var found bool
		if _, rest, found = bytes.Cut(rest, []byte(" ")); !found {
			return nil
		}
	}
	rest = bytes.TrimLeft(rest, " ")
	if len(rest) == 0 || rest[0] != '/' {
		return nil // [heap], [stack], [anon:...]
	}
	return rest
}

// isNode tells whether a path is a device that makes enclaves. A container may have removed it since.
func isNode(path string) bool {
	node, ok := strings.CutPrefix(undeleted(path), "/dev/")
	return ok && slices.Contains(sgxNodes, node)
}

func undeleted(path string) string { return strings.TrimSuffix(path, " (deleted)") }

// opensNode tells whether one of the first files that a process has open is such a device.
func (r Roots) opensNode(tgid uint32) bool {
	dir, err := os.Open(r.of(tgid, "fd"))
	if err != nil {
		return false
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(maxFiles)
	for _, name := range names {
		if target, err := os.Readlink(r.of(tgid, "fd", name)); err == nil && isNode(target) {
			return true
		}
	}
	return false
}
