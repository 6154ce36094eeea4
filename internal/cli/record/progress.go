// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/teescope/teescope/internal/lib/text"
)

// progress writes the state of the recording to standard error: a line that changes if this is a terminal, otherwise a line
// for each repetition.
type progress struct {
	mu     sync.Mutex
	out    io.Writer
	live   bool // a terminal
	shown  bool // a line that changes is on the screen
	prefix string
	now    string
	since  time.Time
}

func newProgress(out *os.File, prefix string) *progress {
	_, err := unix.IoctlGetTermios(int(out.Fd()), unix.TCGETS)
	return &progress{out: out, live: err == nil && os.Getenv("TERM") != "dumb", prefix: prefix}
}

// phase begins a phase.
func (p *progress) phase(name string) {
	p.mu.Lock()
	p.now, p.since = name, time.Now()
	p.mu.Unlock()
	p.tick()
}

// tick draws the line that changes.
func (p *progress) tick() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live {
		p.shown = true
		fmt.Fprintf(p.out, "\r\x1b[Kteescope: %s%s, %s", p.prefix, p.now, time.Since(p.since).Round(time.Second))
	}
}

func (p *progress) wipe() {
	if p.shown {
		p.shown = false
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// clear removes the line that changes.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
}

// line writes a line that stays.
func (p *progress) line(message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wipe()
	for part := range strings.SplitSeq(message, "\n") {
		fmt.Fprintf(p.out, "teescope: %s%s\n", p.prefix, text.Terminal(part))
	}
}

// beside returns a writer to an output that may be the same terminal.
func (p *progress) beside(out io.Writer) io.Writer { return besideWriter{p, out} }

type besideWriter struct {
	*progress
	to io.Writer
}

// Write implements io.Writer.
func (b besideWriter) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wipe()
	return b.to.Write(data)
}

// figure formats a number with three significant digits or all before the point.
func figure(v float64) string {
	if math.Abs(v) >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
