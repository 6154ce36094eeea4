// SPDX-License-Identifier: Apache-2.0

// Package profile says which code a program spends its time in. It holds sampled stacks, divides them by function and by
// group, compares two profiles, and measures functions within others.
//
// It does not read or write files (the packages read and write do), parse flags, or print.
package profile

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// Unknown is how a frame without a name is shown and written.
const Unknown = "[unknown]"

// A Frame is a function on a stack. Two frames with the same fields are one.
type Frame struct {
	Function string // empty if the symbol could not be found
	Library  string // path of the library or program, or what perf calls it, such as [kernel.kallsyms]; empty if unknown
	File     string // source file; empty if unknown
	Line     int64  // source line; 0 if unknown
	Kernel   bool   // whether the frame is one of the kernel
	// Offset is the position of the code in the file of the library, or 0 if it is unknown or was not requested.
	Offset uint64
}

// Name is the function, or Unknown and the library.
func (f Frame) Name() string {
	switch {
	case f.Function != "":
		return f.Function
	case f.Library != "":
		return Unknown + " (" + f.Library + ")"
	}
	return Unknown
}

// Resolved reports whether the frame has the name of a function.
func (f Frame) Resolved() bool { return f.Function != "" }

var address = lazy.Regexp(`^(0x[0-9a-fA-F]{1,16}|[0-9][0-9a-fA-F]{7,15}|f{4,8}[0-9a-f]{8,12})$`)

// NameOf returns the function of a name in a file: nothing for the names that profilers write if they found no symbol.
func NameOf(s string) string {
	switch s {
	case Unknown, "unknown", "??", "[[unknown]]", "<unknown>":
		return ""
	}
	if strings.HasPrefix(s, Unknown+" (") || address().MatchString(s) {
		return ""
	}
	return s
}

// KernelLibrary reports whether a library is the kernel or a module of it, in the notation of perf.
func KernelLibrary(library string) bool {
	switch library {
	case "[vdso]", "[vdso32]", "[vdsox32]", "[vsyscall]", "[heap]", "[stack]", "[anon]", "[unknown]", "[uprobes]", "[sigpage]", "[vectors]", EnclaveLibrary, ExitLibrary:
		return false
	}
	return strings.HasPrefix(library, "bpf_prog_") || strings.HasPrefix(library, "[") && strings.HasSuffix(library, "]") || strings.HasSuffix(library, "/vmlinux") || library == "vmlinux" ||
		strings.HasSuffix(library, ".ko")
}

// NoteComment begins a comment of a pprof file that is a note.
const NoteComment = "note: "

// Labels of samples. Files in pprof's format may have others.
const (
	Process  = "process" // name of the process; perf gives the name of the thread
	PID      = "pid"
	Thread   = "tid"
	Workload = "workload" // container, systemd unit or program, as the agent names it
	Enclave  = "enclave"  // "inside" if the sample was taken in an enclave, by a profiler that can see this
	TCS      = "tcs"      // address of the control structure of the thread in its enclave
	// EnclaveBase is the first address of the enclave.
	EnclaveBase = "enclave_base"
	Reason      = "reason" // why a thread that was off CPU waited
	// Time is the numeric label of a pprof file with the beginning of the bucket of time that a sample was taken in, in nanoseconds
	// since 1970.
	Time = "time"
)

// Reasons of waits that findings are about.
const (
	WaitLock = "lock or condition (futex)"
	WaitEPC  = "EPC page of an enclave"
	WaitCPU  = "CPU (another thread ran)"
)

// Names of libraries that are not files. Their frames do not stand for functions.
const (
	EnclaveLibrary = "[enclave]"      // code in an enclave, whose functions are not visible
	CallLibrary    = "[system calls]" // a system call
	ExitLibrary    = "[AEX]"          // the cause of an asynchronous exit of an enclave
)

// A Label describes where samples are from.
type Label struct{ Key, Value string }

// A ValueType is the kind and unit of the values of samples, such as "cpu" in "nanoseconds" or "samples" in "count".
type ValueType struct{ Type, Unit string }

func (t ValueType) String() string { return t.Type + " (" + t.Unit + ")" }

// nanoseconds is the length of the units of time.
var nanoseconds = map[string]float64{"nanoseconds": 1, "ns": 1, "microseconds": 1e3, "us": 1e3, "milliseconds": 1e6, "ms": 1e6, "seconds": 1e9, "s": 1e9}

// IsTime reports whether the unit is one of time.
func (t ValueType) IsTime() bool { return nanoseconds[t.Unit] > 0 }

// IsSamples reports whether a value is the number of samples that a profiler took.
func (t ValueType) IsSamples() bool { return t.Type == "samples" && t.Unit == "count" }

// A Sample is what all samples with the same stack and labels have in common.
type Sample struct {
	Stack  []uint32 // indices into Frames, the innermost frame first; never empty
	Labels int      // index into LabelSets
	Values []int64  // one for each of Values; none is negative
	At     int64    // when it was taken, in nanoseconds since 1970, or 0: most readers add up all times
}

// A Profile holds samples of one recording.
type Profile struct {
	Format    string // what it was read from, such as "perf script"
	Values    []ValueType
	Main      int // index of the value that is shown: time if there is one
	Frames    []Frame
	LabelSets [][]Label // sorted by key; the first is empty
	Samples   []Sample
	Began     time.Time     // when the recording began; zero if unknown
	Lasted    time.Duration // how long it took; 0 if unknown
	Notes     []string      // notes for readers of figures, such as samples that the kernel lost
}

// Label returns the value of a label of a sample, or "".
func (p *Profile) Label(s *Sample, key string) string {
	for _, l := range p.LabelSets[s.Labels] {
		if l.Key == key {
			return l.Value
		}
	}
	return ""
}

// Total is the sum of the shown value, in its unit.
func (p *Profile) Total() int64 {
	var sum int64
	for i := range p.Samples {
		sum += p.Samples[i].Values[p.Main]
	}
	return sum
}

// Nanoseconds returns the total as time, and false if its unit is not one of time.
func (p *Profile) Nanoseconds() (int64, bool) {
	by := nanoseconds[p.Values[p.Main].Unit]
	ns := float64(p.Total()) * by
	return int64(math.Round(min(ns, math.MaxInt64/2))), by > 0
}

// Taken is the number of samples that intervals are computed from: the total divided by the mean weight of a sample. If
// the samples have different weights, it is smaller than their number, after Kish (Survey Sampling, 1965). It is 0 if
// the profile does not say how many samples were taken.
func (p *Profile) Taken() float64 {
	counted := slices.IndexFunc(p.Values, ValueType.IsSamples)
	if counted < 0 {
		return 0
	}
	var sum, squares float64
	for i := range p.Samples {
		if n := float64(p.Samples[i].Values[counted]); n > 0 {
			w := float64(p.Samples[i].Values[p.Main])
			sum += w
			squares += w * w / n
		}
	}
	if squares == 0 {
		return 0
	}
	return sum * sum / squares
}

// Select chooses the value to show by its type, and returns false if there is none.
func (p *Profile) Select(name string) bool {
	i := slices.IndexFunc(p.Values, func(t ValueType) bool { return t.Type == name })
	if i >= 0 {
		p.Main = i
	}
	return i >= 0
}

// Weights returns the types of the values that are the number of events and their time, if the samples have both. Samples of a timer
// have the same time each, so their number is no other weight.
func (p *Profile) Weights() (counts, times string) {
	for _, t := range p.Values {
		switch {
		case t.Type == "cpu":
			return "", ""
		case t.IsTime():
			times = cmp.Or(times, t.Type)
		case t.Unit == "count" && (counts == "" || counts == "samples"):
			counts = t.Type
		}
	}
	if counts == "" || times == "" {
		return "", ""
	}
	return counts, times
}

// matching returns for each frame whether its function, or the library of a frame without one, matches.
func (p *Profile) matching(re *regexp.Regexp) []bool {
	hits := make([]bool, len(p.Frames))
	for i, f := range p.Frames {
		hits[i] = re.MatchString(f.Name())
	}
	return hits
}

// Within returns the samples with a frame that matches, from the outermost such frame inwards.
func (p *Profile) Within(re *regexp.Regexp) *Profile {
	hits := p.matching(re)
	part := *p
	part.Samples = nil
	for _, s := range p.Samples {
		for i := len(s.Stack) - 1; i >= 0; i-- {
			if hits[s.Stack[i]] {
				s.Stack = s.Stack[:i+1]
				part.Samples = append(part.Samples, s)
				break
			}
		}
	}
	return &part
}
