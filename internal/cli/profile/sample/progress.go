// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/text"
)

// progress tells on the standard error what the recording does. Only a terminal has a line that changes.
type progress struct {
	out  *os.File
	live bool
	last string
}

func newProgress(out *os.File) *progress {
	_, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
	return &progress{out: out, live: err == nil && os.Getenv("TERM") != "dumb"}
}

// tick draws the line that changes.
func (p *progress) tick(s string) {
	if p.live && s != p.last {
		p.last = s
		fmt.Fprintf(p.out, "\r\x1b[Kteescope: %s", s)
	}
}

// clear removes the line that changes.
func (p *progress) clear() {
	if p.last != "" {
		p.last = ""
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// line writes a line that stays.
func (p *progress) line(s string) {
	p.clear()
	fmt.Fprintf(p.out, "teescope: %s\n", text.Terminal(s))
}
