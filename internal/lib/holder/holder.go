// SPDX-License-Identifier: Apache-2.0

// Package holder names the process that has what this one wants: a TCP port, the lock of a file. It reads
// /proc and refuses to do anything about that process.
package holder

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/agent/workload"
)

// Process is who holds something. It is zero when nobody is seen: the holder may be another user's
// process, or in another PID namespace.
type Process struct {
	PID  int
	Comm string // fit to be printed; empty when unknown
}

// String is "process 12 (redis-server)", and empty for nobody.
func (p Process) String() string {
	switch {
	case p.PID == 0:
		return ""
	case p.Comm == "":
		return fmt.Sprintf("process %d", p.PID)
	}
	return fmt.Sprintf("process %d (%s)", p.PID, p.Comm)
}

// maxTable bounds what is read of one file: 100,000 sockets.
const maxTable = 16 << 20

func read(parts ...string) ([]byte, error) {
	f, err := os.Open(filepath.Join(parts...))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxTable))
}

func named(proc string, pid int) Process {
	comm, _ := read(proc, strconv.Itoa(pid), "comm") // it may have ended
	return Process{PID: pid, Comm: workload.Clean(strings.TrimSpace(string(comm)))}
}

// OfPort finds the process that listens on a TCP port, as far as this user may see it. proc is the root
// of /proc.
func OfPort(proc string, port int) Process {
	sockets := map[string]bool{}
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := read(proc, "net", table)
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
	fds, err := filepath.Glob(filepath.Join(proc, "[0-9]*/fd/*"))
	if err != nil {
		return Process{}
	}
	for _, fd := range fds {
		if link, err := os.Readlink(fd); err != nil || !sockets[link] {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(fd)))); err == nil {
			return named(proc, pid)
		}
	}
	return Process{}
}

// parseListeners returns the inodes of the sockets that listen on a port, from /proc/net/tcp or
// tcp6: field 1 is ADDRESS:PORT in hexadecimal, field 3 the state, 0A for LISTEN, field 9 the inode.
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

// OfLock finds the process that has the flock of a file.
func OfLock(proc string, f *os.File) Process {
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return Process{}
	}
	locks, err := read(proc, "locks")
	if err != nil {
		return Process{}
	}
	pid := parseLockOwner(locks, unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	if pid == 0 {
		return Process{}
	}
	return named(proc, pid)
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
