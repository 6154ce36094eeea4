// SPDX-License-Identifier: Apache-2.0

package read

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// maxTracked bounds the files, sockets and unfinished calls of a trace that are distinguished.
const maxTracked = 1 << 16

// Moved are calls that moved data, and the bytes that they moved.
type Moved struct {
	Calls, Bytes uint64
	Line         int // of the first one; 0 without one
}

func (m *Moved) add(bytes uint64, line int) {
	m.Calls++
	m.Bytes += min(bytes, math.MaxUint64-m.Bytes)
	if m.Line == 0 || line < m.Line {
		m.Line = line
	}
}

// plus adds others. A sum stays at the largest number.
func (m *Moved) plus(o Moved) {
	if o.Calls == 0 {
		return
	}
	m.Calls += o.Calls
	m.Bytes += min(o.Bytes, math.MaxUint64-m.Bytes)
	if m.Line == 0 || o.Line < m.Line {
		m.Line = o.Line
	}
}

// Traffic has the bytes that the system calls of a trace moved.
type Traffic struct {
	All     Moved
	Gramine Moved            // through the sockets of the host that Gramine makes pipes and Unix sockets from: one or both ends
	files   map[string]Moved // by name
}

// Files returns what was moved from and to the files that match.
func (t *Traffic) Files(match func(name string) bool) Moved {
	var sum Moved
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		if match(name) {
			sum.plus(t.files[name])
		}
	}
	return sum
}

// moving are the system calls that move data and return the number of bytes.
const moving = "read|write|pread64|pwrite64|readv|writev|preadv|pwritev|preadv2|pwritev2|sendto|recvfrom|sendmsg|recvmsg"

var (
	// movingCall matches a call in the output of strace -f -y or -yy: an optional thread, times, the name, and the descriptor with
	// what it leads to. strace writes < and > in names as escapes.
	movingCall = lazy.Regexp(`^(?:\[pid +(\d+)\] |(\d+) +)?(?:[\d:.]+ +){0,2}(` + moving + `)\(\d+<(.*?)>[,)]`)
	// movingEnd matches the end of a call that another thread interrupted in the output.
	movingEnd = lazy.Regexp(`^(?:\[pid +(\d+)\] |(\d+) +)?(?:[\d:.]+ +){0,2}<\.\.\. (?:` + moving + `) resumed>`)
	// bytesMoved matches the number of bytes at the end of a line, which a time may follow (-T).
	bytesMoved = lazy.Regexp(` = (\d+)(?: <[\d.]+>)?$`)
	// unixSocket matches a Unix socket with its inode, that of its peer and its name (-yy).
	unixSocket = lazy.Regexp(`^UNIX(?:-[A-Z]+)?:\[(\d+)(?:->(\d+))?(?:,(@?)"(.*)")?\]$`)
)

// gramineSocket begins the abstract names of the sockets of Gramine, without the @ of strace.
const gramineSocket = "/gramine/"

// trace is a trace that is being read.
type trace struct {
	Traffic
	unfinished map[string]string // what the call of a thread leads to
	sockets    map[string]end    // by inode
	named      map[string]bool   // inodes of sockets with a name of Gramine
}

// end is an end of a Unix socket.
type end struct {
	peer  string
	moved Moved
}

// ParseTraffic reads the calls of strace -f -yy that move data. Other calls, and those that failed, are omitted.
func ParseTraffic(data []byte) (Traffic, error) {
	t := trace{Traffic: Traffic{files: make(map[string]Moved)}, unfinished: make(map[string]string), sockets: make(map[string]end), named: make(map[string]bool)}
	for n, line := range lines(string(data)) {
		if found := movingCall().FindStringSubmatch(line); found != nil {
			thread, target := cmp.Or(found[1], found[2]), found[4]
			if strings.HasSuffix(line, "<unfinished ...>") {
				if len(t.unfinished) < maxTracked {
					t.unfinished[thread] = target
				}
				continue
			}
			t.moved(target, line, n)
			continue
		}
		if found := movingEnd().FindStringSubmatch(line); found != nil {
			thread := cmp.Or(found[1], found[2])
			if target, known := t.unfinished[thread]; known {
				delete(t.unfinished, thread)
				t.moved(target, line, n)
			}
		}
	}
	if t.All.Calls == 0 {
		return Traffic{}, fmt.Errorf("%w: strace -f -yy writes lines such as 12 read(5</srv/data>, \"...\", 4096) = 4096", errNothing)
	}
	for inode, e := range t.sockets {
		if t.named[inode] || t.named[e.peer] {
			t.Gramine.plus(e.moved)
		}
	}
	return t.Traffic, nil
}

// moved takes the end of a call.
func (t *trace) moved(target, line string, n int) {
	found := bytesMoved().FindStringSubmatch(line)
	if found == nil {
		return
	}
	bytes, err := strconv.ParseUint(found[1], 10, 48)
	if err != nil {
		return
	}
	t.All.add(bytes, n)
	socket := unixSocket().FindStringSubmatch(target)
	switch {
	case socket != nil:
		inode := socket[1]
		e, known := t.sockets[inode]
		if !known && len(t.sockets) == maxTracked {
			return
		}
		e.moved.add(bytes, n)
		e.peer = cmp.Or(socket[2], e.peer)
		t.sockets[inode] = e
		if socket[3] == "@" && strings.HasPrefix(socket[4], gramineSocket) {
			t.named[inode] = true
		}
	case strings.HasPrefix(target, "/"):
		m, known := t.files[target]
		if !known && len(t.files) == maxTracked {
			return
		}
		m.add(bytes, n)
		t.files[target] = m
	}
}
