// SPDX-License-Identifier: Apache-2.0

package holder

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

const (
	listeners = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2616 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:2616 0100007F:8A3E 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 20 4 30 10 -1
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0000000000000000 100 0 0 10 0
`
	locks = `1: POSIX  ADVISORY  WRITE 1 08:01:131 0 EOF
2: FLOCK  ADVISORY  WRITE 4242 fd:01:1703949 0 EOF
2: -> FLOCK  ADVISORY  WRITE 77 fd:01:1703950 0 EOF
3: FLOCK  ADVISORY  WRITE -1 00:2f:9 0 EOF
`
)

func TestParseListeners(t *testing.T) {
	for port, want := range map[int]string{9750: "4711", 22: "4713", 80: ""} {
		if got := strings.Join(parseListeners([]byte(listeners), port), " "); got != want {
			t.Errorf("parseListeners(%d) = %q, want %q", port, got, want)
		}
	}
}

func TestParseLockOwner(t *testing.T) {
	for _, tt := range []struct {
		major, minor uint32
		inode        uint64
		want         int
	}{{0xfd, 1, 1703949, 4242}, {8, 1, 131, 0}, {0xfd, 1, 1703950, 0}, {0, 0x2f, 9, 0}, {0, 0, 0, 0}} {
		if got := parseLockOwner([]byte(locks), tt.major, tt.minor, tt.inode); got != tt.want {
			t.Errorf("parseLockOwner(%x:%x:%d) = %d, want %d", tt.major, tt.minor, tt.inode, got, tt.want)
		}
	}
}

// This process holds a port and a lock, and both lookups find it.
func TestThisProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := OfLock("/proc", f); got != (Process{}) {
		t.Errorf("the lock is free, but the holder is %v", got)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("process %d (holder.test)", os.Getpid())
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("no TCP address")
	}
	if got := OfPort("/proc", addr.Port).String(); got != want {
		t.Errorf("the port is held by %q, want %q", got, want)
	}
	if got := OfLock("/proc", f).String(); got != want {
		t.Errorf("the lock is held by %q, want %q", got, want)
	}
	l.Close()
	if got := OfPort("/proc", addr.Port); got.String() != "" {
		t.Errorf("a port that is free is held by %v", got)
	}
}

// FuzzTables: a process chooses its own name, and the holder's name is printed.
func FuzzTables(f *testing.F) {
	f.Add([]byte(listeners), []byte(locks), []byte("redis\n"), uint16(9750))
	f.Add([]byte{}, []byte{}, []byte("\x1b]0;x\x07\xff\u009b"), uint16(0))
	proc := f.TempDir()
	for _, dir := range []string{"net", "7/fd"} {
		if err := os.MkdirAll(filepath.Join(proc, dir), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	if err := os.Symlink("socket:[4711]", filepath.Join(proc, "7/fd/3")); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, tcp, locks, comm []byte, port uint16) {
		for name, data := range map[string][]byte{"net/tcp": tcp, "7/comm": comm} {
			if err := os.WriteFile(filepath.Join(proc, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		p := OfPort(proc, int(port))
		if listens := slices.Contains(parseListeners(tcp, int(port)), "4711"); listens != (p.PID == 7) || p.PID != 0 && p.PID != 7 {
			t.Errorf("%q is held by %v", tcp, p)
		}
		if s := p.String(); !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) || (s == "") != (p.PID == 0) {
			t.Errorf("%q is not printable", s)
		}
		line := fmt.Sprintf("\n 0: 0100007F:%04X 00000000:0000 0A 0:0 0:0 0 0 0 4711 1\n", port)
		if got := parseListeners(append(slices.Clone(tcp), line...), int(port)); !slices.Contains(got, "4711") {
			t.Errorf("no process listens on %d after %q", port, tcp)
		}
		if pid := parseLockOwner(locks, 0xfd, 1, uint64(port)); pid < 0 || pid > 0 && !strings.Contains(string(locks), fmt.Sprint(pid)) {
			t.Errorf("%q is held by %d", locks, pid)
		}
		line = fmt.Sprintf("1: FLOCK  ADVISORY  WRITE 77 fd:01:%d 0 EOF\n", port)
		if pid := parseLockOwner([]byte(line+string(locks)), 0xfd, 1, uint64(port)); pid != 77 {
			t.Errorf("%q is held by %d", line, pid)
		}
	})
}
