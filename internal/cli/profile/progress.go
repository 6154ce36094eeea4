// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/text"
)

// Progress writes the progress of a command to standard error. Only a terminal has a line that changes.
type Progress struct {
	out  *os.File
	live bool
	last string
}

// NewProgress returns one for a file that is the standard error.
func NewProgress(out *os.File) *Progress {
	_, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
	return &Progress{out: out, live: err == nil && os.Getenv("TERM") != "dumb"}
}

// Tick draws the line that changes.
func (p *Progress) Tick(s string) {
	if p.live && s != p.last {
		p.last = s
		fmt.Fprintf(p.out, "\r\x1b[Kteescope: %s", s)
	}
}

// Clear removes the line that changes.
func (p *Progress) Clear() {
	if p.last != "" {
		p.last = ""
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// Line writes a line that stays.
func (p *Progress) Line(s string) {
	p.Clear()
	fmt.Fprintf(p.out, "teescope: %s\n", text.Terminal(s))
}
