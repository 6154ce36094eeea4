// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestProgressOnATerminal reads what a terminal gets: each line replaces the one before, and the last one is removed.
func TestProgressOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	defer screen.Close()
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal: %v", err)
	}
	defer terminal.Close()
	p := NewProgress(terminal)
	p.Tick("reading perf.data: 16 MiB")
	p.Tick("reading perf.data: 16 MiB")
	p.Tick("reading perf.data: 32 MiB")
	p.Clear()
	want := "\r\x1b[Kteescope: reading perf.data: 16 MiB\r\x1b[Kteescope: reading perf.data: 32 MiB\r\x1b[K"
	got := make([]byte, 0, 1024)
	for len(got) < len(want) {
		n, err := screen.Read(got[len(got):cap(got)])
		if err != nil {
			t.Fatal(err)
		}
		got = got[:len(got)+n]
	}
	if string(got) != want {
		t.Errorf("the terminal gets %q, want %q", got, want)
	}
}

// TestNoProgressInFiles: only a line that stays is written to a file.
func TestNoProgressInFiles(t *testing.T) {
	out, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := NewProgress(out)
	p.Tick("reading perf.data: 16 MiB")
	p.Line("wrote x\x1b[2J")
	if got, err := os.ReadFile(out.Name()); err != nil || string(got) != "teescope: wrote x\uFFFD[2J\n" {
		t.Errorf("%q, %v", got, err)
	}
}
