// SPDX-License-Identifier: Apache-2.0

package read

import (
	"bytes"
	"errors"
	"fmt"
	"github.com/teescope/teescope/internal/lib/lazy"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/text"
	"github.com/teescope/teescope/internal/run/profile"
)

// perf reads the text of "perf script" with its default fields, and with pid, srcline or cpu added (perf-script(1)). A
// sample is a line with the thread and the event, one line for each frame, the innermost first, and an empty line.
// Without stacks, the frame is on the first line.
type perf struct {
	limits profile.Limits
	b      *profile.Builder
	wanted string   // event to read
	events []string // seen, in their order
	open   bool     // whether a sample of the event has begun
	labels [3]profile.Label
	weight int64
	given  bool // whether samples have a period
	stack  []uint32
	raw    []profile.Frame // the same frames, to add what following lines say
	lost   int64
}

// maxEvents is the number of different events that a recording may have.
const maxEvents = 64

// perfHeader has the name of the thread, [process/]thread, [CPU], time, [period] and event. What follows is the only frame,
// or the fields of a tracepoint.
var perfHeader = lazy.Regexp(`^\s*(.+?)\s+(-?\d+)(?:/(-?\d+))?\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+(?:(\d+)\s+)?([^\s:]\S*?):(?:\s+(.*))?$`)

var (
	perfOffset = lazy.Regexp(`\+0x[0-9a-f]+$`)
	perfSource = lazy.Regexp(`^\s+(\S.*):(\d+)$`)
	perfNoLine = lazy.Regexp(`^\s+\S.*\[[0-9a-f]+\]$`) // for code without line numbers: LIBRARY[ADDRESS]
	perfLost   = lazy.Regexp(`PERF_RECORD_LOST(?:_SAMPLES)? lost (\d+)`)
)

// perfMeta reports whether a line is about the recording and not a sample.
func perfMeta(line []byte) bool { return bytes.Contains(line, []byte(" PERF_RECORD_")) }

func newPerf(event string, limits profile.Limits) *perf {
	return &perf{limits: limits, wanted: event}
}

func (r *perf) line(line []byte) error {
	switch {
	case len(bytes.TrimSpace(line)) == 0:
		return r.flush()
	case line[0] == '#':
		return nil
	case line[0] == '\t':
		if !r.open {
			return nil // of an event that is not read
		}
		return r.frame(bytes.TrimLeft(line, "\t "))
	}
	if perfMeta(line) {
		if m := perfLost().FindSubmatch(line); m != nil {
			n, err := strconv.ParseInt(string(m[1]), 10, 32)
			if err != nil {
				return fmt.Errorf("%q: the number of lost samples is too large", excerpt(line))
			}
			r.lost += n
		}
		return nil
	}
	if perfNoLine().Match(line) {
		return nil
	}
	if m := perfSource().FindSubmatch(line); m != nil && !perfHeader().Match(line) {
		if n := len(r.raw); r.open && n > 0 {
			at, err := strconv.ParseInt(string(m[2]), 10, 32)
			if err != nil {
				return fmt.Errorf("%q: the line of the source file is too large", excerpt(line))
			}
			r.raw[n-1].File, r.raw[n-1].Line = string(m[1]), at
		}
		return nil
	}
	if err := r.flush(); err != nil {
		return err
	}
	return r.header(line)
}

func (r *perf) header(line []byte) error {
	m := perfHeader().FindSubmatch(line)
	if m == nil {
		return fmt.Errorf("%q is not the output of perf script: write it with \"perf script -F comm,pid,tid,time,period,event,ip,sym,dso\"", excerpt(line))
	}
	event := text.Label(string(m[5]))
	if !slices.Contains(r.events, event) {
		if len(r.events) >= maxEvents {
			return fmt.Errorf("more than %d different events, %w", maxEvents, profile.ErrLimit)
		}
		r.events = append(r.events, event)
	}
	if r.wanted != "" && event != r.wanted || r.wanted == "" && event != r.events[0] {
		return nil
	}
	r.weight = 1
	if len(m[4]) > 0 {
		v, err := strconv.ParseInt(string(m[4]), 10, 64)
		if err != nil || v >= 1<<61 {
			return fmt.Errorf("%q: the period is too large", excerpt(line))
		}
		r.weight = v
	}
	if r.b == nil {
		r.begin(event, len(m[4]) > 0)
	} else if r.given != (len(m[4]) > 0) {
		return fmt.Errorf("%q: some samples have a period and others have none: write the text with one command", excerpt(line))
	}
	process, thread := "", string(m[2])
	if len(m[3]) > 0 {
		process, thread = thread, string(m[3])
	}
	r.labels = [3]profile.Label{{Key: profile.Process, Value: string(m[1])}, {Key: profile.PID, Value: process}, {Key: profile.Thread, Value: thread}}
	r.open = true
	if rest := bytes.TrimSpace(m[6]); r.alone(rest) {
		return r.frame(rest)
	}
	return nil
}

// alone reports whether the rest of a header is the frame of a sample without a stack.
func (r *perf) alone(rest []byte) bool {
	ip, after, found := bytes.Cut(rest, []byte(" "))
	if _, err := strconv.ParseUint(string(ip), 16, 64); err != nil {
		return false
	}
	return found && bytes.HasSuffix(after, []byte(")"))
}

// begin knows the event, and so what the values of samples are. The clocks of the kernel count nanoseconds.
func (r *perf) begin(event string, period bool) {
	values := []profile.ValueType{{Type: "samples", Unit: "count"}}
	name, _, _ := strings.Cut(event, ":")
	switch r.given = period; {
	case !period:
	case name == "cpu-clock" || name == "task-clock":
		values = append(values, profile.ValueType{Type: "cpu", Unit: "nanoseconds"})
	default:
		values = append(values, profile.ValueType{Type: event, Unit: "count"})
	}
	r.b = profile.NewBuilder("perf script", values, r.limits)
}

// frame reads "ADDRESS FUNCTION+OFFSET (LIBRARY)".
func (r *perf) frame(line []byte) error {
	if len(r.raw) >= r.limits.Depth {
		return fmt.Errorf("a stack of more than %d frames, %w", r.limits.Depth, profile.ErrLimit)
	}
	ip, rest, _ := bytes.Cut(line, []byte(" "))
	if _, err := strconv.ParseUint(string(ip), 16, 64); err != nil {
		return fmt.Errorf("%q is not a frame of perf script: a frame is ADDRESS FUNCTION (LIBRARY)", excerpt(line))
	}
	name, library := split(string(bytes.TrimSpace(rest)))
	f := profile.Frame{Function: profile.NameOf(perfOffset().ReplaceAllString(name, "")), Library: library}
	// Addresses of the kernel have all upper bits set on x86-64 and aarch64.
	f.Kernel = profile.KernelLibrary(library) || len(ip) == 16 && ip[0] == 'f' && !strings.HasPrefix(library, "/") && library != "[vsyscall]"
	if library == "[unknown]" || library == "" {
		f.Library = ""
		if f.Kernel {
			f.Library = "[kernel.kallsyms]"
		}
	}
	if library == "inlined" { // in the function of the next frame, whose library is this frame's too
		f.Library = inlined
	}
	r.raw = append(r.raw, f)
	return nil
}

// inlined marks the library of an inlined frame until the next frame is known. No path has a control character.
const inlined = "\x00"

// split separates a function from the library in parentheses at the end. Both may have parentheses.
func split(s string) (name, library string) {
	if !strings.HasSuffix(s, ")") {
		return s, ""
	}
	depth := 0
	for i := len(s) - 1; i >= 0; i-- {
		switch s[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				if i > 0 && s[i-1] != ' ' {
					continue // of a name such as a (deleted)
				}
				return strings.TrimSpace(s[:i]), s[i+1 : len(s)-1]
			}
		}
	}
	return s, ""
}

// flush adds the sample that is complete.
func (r *perf) flush() error {
	if !r.open {
		return nil
	}
	r.open = false
	r.stack = r.stack[:0]
	library := ""
	for i := len(r.raw) - 1; i >= 0; i-- {
		if f := &r.raw[i]; f.Library == inlined {
			f.Library, f.Kernel = library, profile.KernelLibrary(library)
		} else {
			library = f.Library
		}
	}
	for _, f := range r.raw {
		i, err := r.b.Frame(f)
		if err != nil {
			return err
		}
		r.stack = append(r.stack, i)
	}
	r.raw = r.raw[:0]
	values := []int64{1, r.weight}
	if !r.given {
		values = values[:1]
	}
	return r.b.Add(r.stack, r.labels[:], values...)
}

func (r *perf) end() (*profile.Profile, error) {
	if err := r.flush(); err != nil {
		return nil, err
	}
	switch {
	case r.wanted != "" && !slices.Contains(r.events, r.wanted):
		return nil, fmt.Errorf("it has no event %q: choose %s with --event", r.wanted, strings.Join(r.events, " or "))
	case r.wanted == "" && len(r.events) > 1:
		return nil, fmt.Errorf("it has several events: choose %s with --event", strings.Join(r.events, " or "))
	case r.b == nil:
		return nil, errors.New("it is a profile without any sample")
	}
	if r.lost > 0 {
		r.b.Note("the kernel lost " + text.Plural(int(r.lost), "sample", "samples"))
	}
	return r.b.Profile(), nil
}
