// SPDX-License-Identifier: Apache-2.0

// Package holder names the process that holds a resource that this process needs: a TCP port or a file lock. It only reads
// /proc.
package holder

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/text"
)

// Process is the holder of a resource. It is zero when the holder is not visible. The holder may then belong to another
// user or be in another PID namespace.
type Process struct {
	PID  int
	Comm string // printable; empty when unknown
}

// String returns a text such as "process 12 (redis-server)", and "" for an unknown process.
func (p Process) String() string {
	switch {
	case p.PID == 0:
		return ""
	case p.Comm == "":
		return fmt.Sprintf("process %d", p.PID)
	}
	return fmt.Sprintf("process %d (%s)", p.PID, p.Comm)
}

// Bounds of what is read.
const (
	maxTable = 16 << 20 // bytes of one file: 100,000 sockets
	maxOpen  = 1 << 16  // open files of one process
)

func named(proc hostfs.Root, pid int) Process {
	comm, _ := proc.Process(pid).Comm() // the process may have ended
	return Process{PID: pid, Comm: text.Terminal(strings.TrimSpace(comm))}
}

// OfPort finds the process that listens on a TCP port, if this user may see it. proc is the root of /proc.
func OfPort(proc string, port int) Process {
	root := hostfs.At(proc)
	sockets := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := root.ReadLines(maxTable, "net", table)
		if err != nil {
			continue // no IPv6
		}
		for _, inode := range parseListeners(data, port) {
			sockets["socket:["+inode+"]"] = true
		}
	}
	if len(sockets) == 0 {
		return Process{}
	}
	pids, _ := root.Processes() // processes listed despite an error can hold the port
	for _, pid := range pids {
		if root.Process(pid).HasOpen(maxOpen, func(target string) bool { return sockets[target] }) {
			return named(root, pid)
		}
	}
	return Process{}
}

// parseListeners returns the inodes of the sockets that listen on a port, from /proc/net/tcp or tcp6. Field 1 is
// ADDRESS:PORT in hexadecimal, field 3 the state (0A is LISTEN), and field 9 the inode.
func parseListeners(table []byte, port int) []string {
	var out []string
	for line := range bytes.Lines(table) {
		f := strings.Fields(string(line))
		if len(f) < 10 || f[3] != "0A" {
			continue
		}
		_, p, ok := strings.Cut(f[1], ":")
		if b, err := hex.DecodeString(p); ok && err == nil && len(b) == 2 && int(b[0])<<8|int(b[1]) == port {
			out = append(out, f[9])
		}
	}
	return out
}

// OfLock finds the process that holds the flock of a file.
func OfLock(proc string, f *os.File) Process {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return Process{}
	}
	root := hostfs.At(proc)
	locks, err := root.ReadLines(maxTable, "locks")
	if err != nil {
		return Process{}
	}
	pid := parseLockOwner(locks, unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	if pid == 0 {
		return Process{}
	}
	return named(root, pid)
}

// parseLockOwner finds the owner of an flock in /proc/locks, whose lines read, after proc(5),
//
//	5: FLOCK  ADVISORY  WRITE 5837 fd:01:1703949 0 EOF
//
// with the device in hexadecimal. It returns 0 when there is none.
func parseLockOwner(locks []byte, major, minor uint32, inode uint64) int {
	want := fmt.Sprintf("%02x:%02x:%d", major, minor, inode)
	for line := range bytes.Lines(locks) {
		fields := strings.Fields(string(line))
		if len(fields) < 6 || fields[1] != "FLOCK" || fields[5] != want {
			continue
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil && pid > 0 {
			return pid
		}
	}
	return 0
}
