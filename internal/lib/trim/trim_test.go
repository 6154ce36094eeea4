// SPDX-License-Identifier: Apache-2.0

package trim

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/hostfs"
)

func TestTrimGivesBackThePagesOfTheProgram(t *testing.T) {
	resident := func() int {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
		if m == nil {
			t.Fatal("no RssFile in /proc/self/status")
		}
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := resident()
	Trim()
	if after := resident(); after > before*3/4 {
		t.Errorf("%d KiB of files resident before, %d after", before, after)
	}
}

func TestCleanMappingsLeaveOutWhatWasWritten(t *testing.T) {
	const smaps = `00400000-01000000 r-xp 00000000 08:01 42      /usr/bin/teescope
Rss:               12000 kB
Anonymous:             0 kB
01000000-01002000 r--p 00c00000 08:01 42      /usr/bin/teescope
Rss:                   8 kB
Anonymous:             8 kB
01002000-02000000 r--p 00c02000 08:01 42      /usr/bin/teescope
Anonymous:             0 kB
02000000-03000000 rw-p 01c00000 08:01 42      /usr/bin/teescope
Anonymous:             0 kB
7f0000000000-7f0000100000 r-xp 00000000 08:01 43      /usr/lib/libc.so.6
Anonymous:             0 kB
7f0000100000-7f0000200000 r--p 00000000 00:00 0
Anonymous:             0 kB
`
	proc := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(proc, "self"), 0o755), os.Symlink("/usr/bin/teescope", filepath.Join(proc, "self/exe")),
		os.WriteFile(filepath.Join(proc, "self/smaps"), []byte(smaps), 0o644)); err != nil {
		t.Fatal(err)
	}
	want := []mapping{{0x400000, 0x1000000}, {0x1002000, 0x2000000}}
	clean, mixed := own(hostfs.At(proc).Self())
	if !slices.Equal(clean, want) {
		t.Errorf("clean are %x, want %x", clean, want)
	}
	if want := []mapping{{0x1000000, 0x1002000}}; !slices.Equal(mixed, want) {
		t.Errorf("partly written are %x, want %x", mixed, want)
	}
}

// A probe on this program has written a page of its code, as a breakpoint of a debugger does.
func TestTrimKeepsOnlyTheWrittenPageOfAMapping(t *testing.T) {
	name := filepath.Join(t.TempDir(), "program")
	const pages = 64
	size := pages * os.Getpagesize()
	if err := os.WriteFile(name, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	code, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(code) }()
	sum := byte(0)
	for i := 0; i < size; i += os.Getpagesize() {
		sum += code[i] // reads the page
	}
	written := 10 * os.Getpagesize()
	code[written] = 1 + sum
	from := uintptr(unsafe.Pointer(&code[0]))
	at, page := from+uintptr(written), uintptr(os.Getpagesize())
	want := []mapping{{from, at}, {at + page, from + uintptr(size)}}
	if got := filePages(hostfs.At("/proc").Self(), []mapping{{from, from + uintptr(size)}}); !slices.Equal(got, want) {
		t.Errorf("unwritten are %x, want %x", got, want)
	}
}
