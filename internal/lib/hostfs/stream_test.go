// SPDX-License-Identifier: Apache-2.0

package hostfs

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs/hostfstest"
)

func TestStream(t *testing.T) {
	dir := t.TempDir()
	hostfstest.Write(t, dir, "kallsyms", "0123456789")
	for _, tt := range []struct {
		most int64
		want string
	}{{0, ""}, {4, "0123"}, {10, "0123456789"}, {11, "0123456789"}} {
		s, err := At(dir).Open(tt.most, "kallsyms")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if data, err := io.ReadAll(s); err != nil || string(data) != tt.want {
				t.Errorf("of at most %d bytes %q were read, %v", tt.most, data, err)
			}
			if err := s.Rewind(); err != nil {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := At(dir).Open(1, "none"); !os.IsNotExist(err) {
		t.Errorf("without a file: %v", err)
	}
}

// A descriptor that cannot be read leads to its file, also when another file has its name now.
func TestReopen(t *testing.T) {
	dir := t.TempDir()
	hostfstest.Write(t, dir, "a", "the first")
	fd, err := unix.Open(filepath.Join(dir, "a"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	hostfstest.Write(t, dir, "a", "the second")
	f, err := Reopen(fd, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if data, err := io.ReadAll(f); err != nil || string(data) != "the first" || f.Name() != "a" {
		t.Errorf("%q, %q, %v", f.Name(), data, err)
	}
	if _, err := Reopen(-1, "a"); err == nil {
		t.Error("no error for no descriptor")
	}
}

// The page that this process has written to a private mapping of a file, and only that, is anonymous.
func TestPagesAndSmaps(t *testing.T) {
	size := os.Getpagesize()
	const pages = 8
	name := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(name, make([]byte, pages*size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	memory, err := unix.Mmap(int(f.Fd()), 0, pages*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(memory) }() // the test is over
	sum := byte(0)
	for i := 0; i < len(memory); i += size {
		sum += memory[i]
	}
	memory[3*size] = sum + 1
	self, found := At("/proc").Self(), false
	err = self.Smaps(func(m Mapping, anonymous uint64) {
		if string(m.Path) != name {
			return
		}
		found = true
		states, err := self.Pages(m)
		if anonymous != uint64(size) || !m.Writable || len(states) != pages || err != nil {
			t.Errorf("%d bytes are anonymous, writable: %v, %d pages: %v", anonymous, m.Writable, len(states), err)
		}
		for i, s := range states {
			if s.Present() && s.OfFile() != (i != 3) || i == 3 && !s.Present() {
				t.Errorf("page %d: %x", i, s)
			}
		}
	})
	if !found || err != nil {
		t.Errorf("the mapping is not found, %v", err)
	}
	for _, m := range []Mapping{{Start: 4096}, {End: 1 << 50}, {Start: 1 << 63, End: 1<<63 + 4096}} {
		if _, err := self.Pages(m); err == nil {
			t.Errorf("no error for %x", m.Start)
		}
	}
}
