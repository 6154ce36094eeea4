// SPDX-License-Identifier: Apache-2.0

// Package read reads profiles: pprof files, folded stacks, recordings of perf and of Gramine, the text of perf script, the output of
// callgrind, requests of OTLP, and the tables of strace -c and of VTune. It recognises a format by the content.
//
// What it reads may be hostile. Bytes, lines, stacks and the memory that a file needs are bounded. It does not
// interpret a function.
package read

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"io"
	"slices"

	tables "github.com/teescope/teescope/internal/advise/read"
	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
	"github.com/teescope/teescope/internal/run/profile/read/names"
	"github.com/teescope/teescope/internal/run/profile/read/perfdata"
)

const (
	maxText   = 64 << 30  // bytes of a text, after decompression; it is read as a stream
	maxPprof  = 128 << 20 // bytes of a pprof file, after decompression; it is read as a whole
	maxLine   = 1 << 20   // bytes of a line
	peekBytes = 64 << 10  // what a format is recognised by
)

// Gramine is the format of a profile that Gramine's profiler wrote. Its samples are OCALLs in two of its three modes.
const Gramine = "sgx-perf.data"

// Accepted describes what Open reads, for messages and help.
const Accepted = "a recording of perf (perf.data) or of Gramine (sgx-perf.data), the output of \"perf script\", a pprof file, a request of OTLP (OpenTelemetry), the output of callgrind, of \"strace -c\" or of \"vtune -report hotspots -format csv\", or folded stacks (FUNCTION;FUNCTION;... COUNT), each also compressed by gzip"

// Options select a part of a file.
type Options struct {
	Event    string        // event of a recording with several events; empty if there is only one
	Names    *names.Finder // of functions that a file has no names for; nil leaves them unresolved
	Times    bool          // keeps apart samples of different times, of the formats that have them
	Offsets  bool          // sets the offsets of frames, of files in pprof's format
	Progress func(int64)   // is called with the number of bytes that were read, after decompression, for each 16 MiB; may be nil
}

// Open reads a file. The error names it.
func Open(name string, o Options) (*profile.Profile, error) {
	f, err := inputfile.Open(name)
	if err != nil {
		return nil, text.Remedy(err, "")
	}
	defer f.Close()
	p, err := Read(f, o, profile.DefaultLimits())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Read reads a profile.
func Read(r io.Reader, o Options, limits profile.Limits) (*profile.Profile, error) {
	in := bufio.NewReaderSize(r, peekBytes)
	head, err := in.Peek(peekBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if bytes.HasPrefix(head, []byte{0x1f, 0x8b}) {
		unpacked, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("it begins like a file of gzip: %w", err)
		}
		in = bufio.NewReaderSize(unpacked, peekBytes)
		if head, err = in.Peek(peekBytes); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
	}
	var p *profile.Profile
	switch f := recognise(head); f {
	case binaryFile:
		p, err = readBinary(in, o, limits)
	case foldedStacks:
		p, err = readLines(in, o, newFolded(limits))
	case perfScript:
		p, err = readLines(in, o, newPerf(o.Event, limits))
	case callgrindFormat:
		p, err = readLines(in, o, newCallgrind(limits))
	case perfData:
		p, err = readPerfData(in, o, limits)
	case straceCounts, vtuneHotspots:
		p, err = readTable(in, f, limits)
	case empty:
		return nil, errors.New("it is empty: use " + Accepted)
	default:
		return nil, errors.New("unknown format: use " + Accepted)
	}
	if err != nil {
		return nil, err
	}
	if len(p.Samples) == 0 {
		return nil, errors.New("it is a profile without any sample")
	}
	return p, nil
}

type format int

const (
	unknown format = iota
	empty
	binaryFile // pprof or OTLP
	foldedStacks
	perfScript
	perfData
	callgrindFormat
	straceCounts
	vtuneHotspots
)

var foldedLine = lazy.Regexp(`^[^\t].* [0-9]+(\.[0-9]+)?\s*$`)

// recognise looks at the beginning of a file. The first line that is neither empty nor a comment decides.
func recognise(head []byte) format {
	if len(head) == 0 {
		return empty
	}
	if slices.ContainsFunc(perfdata.Magics[:], func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }) {
		return perfData
	}
	if bytes.ContainsAny(head[:min(len(head), 4096)], "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x10\x12\x1a") {
		return binaryFile
	}
	if callgrindHead().Match(head[:min(len(head), 4096)]) {
		return callgrindFormat
	}
	for line := range bytes.Lines(head) {
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) == 0 || line[0] == '#' {
			continue
		}
		switch {
		case tables.IsCalls(string(line)):
			return straceCounts
		case tables.IsHotspots(string(line)):
			return vtuneHotspots
		case perfHeader().Match(line) || perfMeta(line):
			return perfScript
		case foldedLine().Match(line):
			return foldedStacks
		}
		return unknown
	}
	return empty
}

// A liner reads a format that consists of lines.
type liner interface {
	line(line []byte) error
	end() (*profile.Profile, error)
}

// readLines feeds the lines of a text. Errors name the line.
func readLines(in *bufio.Reader, o Options, to liner) (*profile.Profile, error) {
	lines := bufio.NewScanner(newLimited(in, o))
	lines.Buffer(make([]byte, 64<<10), maxLine)
	n := 0
	for lines.Scan() {
		n++
		if err := to.line(bytes.TrimSuffix(lines.Bytes(), []byte("\r"))); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("it has more than %d KiB, %w", maxLine>>10, profile.ErrLimit)
		}
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	return to.end()
}

// limited fails after a number of bytes, so that the end of a text is not taken for the end of the file. It reports the progress.
type limited struct {
	from     io.Reader
	at, next int64
	progress func(int64)
}

// step is the number of bytes between two reports of the progress.
const step = 16 << 20

func newLimited(from io.Reader, o Options) *limited { return &limited{from, 0, step, o.Progress} }

func (l *limited) Read(b []byte) (int, error) {
	if l.at >= maxText {
		return 0, fmt.Errorf("the text has more than %d GiB, %w", maxText>>30, profile.ErrLimit)
	}
	n, err := l.from.Read(b[:min(int64(len(b)), maxText-l.at)])
	if l.at += int64(n); l.progress != nil && l.at >= l.next {
		l.next = l.at + step
		l.progress(l.at)
	}
	return n, err
}

// excerpt shows a line in a message.
func excerpt(line []byte) string {
	return text.Short(text.Terminal(text.UTF8(string(line[:min(len(line), 300)]))), 80)
}
