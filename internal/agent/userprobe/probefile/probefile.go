// SPDX-License-Identifier: Apache-2.0

// Package probefile reads files of the user's own probes (docs/user/probes.md) and reports every problem with its line.
//
// It does not depend on the kernel. Whether an event exists, and which fields it has, is decided where probes are attached.
package probefile

import (
	"fmt"
	"strings"

	"github.com/teescope/teescope/internal/lib/inputfile"
	"github.com/teescope/teescope/internal/lib/text"
)

// Limits of a file.
const (
	maxProbes  = 16
	maxKeys    = 3  // of a probe, besides its workload
	maxBuckets = 33 // with a bound
	maxFile    = 256 << 10
	maxName    = 60   // characters of a name or unit
	maxText    = 1000 // characters of any other text

	defaultSeries, maxSeries = 256, 2048
)

// prefix is what the name of each family begins with.
const prefix = "teescope_user_"

// Mechanism is the way in which a probe is attached.
type Mechanism string

// The mechanisms, which are also keys of a probe in the file.
const (
	Tracepoint Mechanism = "tracepoint"
	Kprobe     Mechanism = "kprobe"
	Kretprobe  Mechanism = "kretprobe"
	Uprobe     Mechanism = "uprobe"
	Uretprobe  Mechanism = "uretprobe"
	USDT       Mechanism = "usdt"
)

var mechanisms = []Mechanism{Tracepoint, Kprobe, Kretprobe, Uprobe, Uretprobe, USDT}

// returns reports whether the events are returns of a function.
func (m Mechanism) returns() bool { return m == Kretprobe || m == Uretprobe }

// Probe is one probe of a file.
type Probe struct {
	Line      int
	Name      string
	Help      string
	Mechanism Mechanism
	Target    Target
	Keys      []Key
	Value     Value
	Only      *Filter // nil: every event counts
	Series    int     // most series with keys
}

// Target is the event of a probe.
type Target struct {
	Category string // of a tracepoint
	Name     string // of a tracepoint, a function of the kernel, or a USDT probe
	File     string // the path of a program or library
	Symbol   string // a function of the file
	Offset   uint64 // a position in the file, if Symbol is empty
	Provider string // of a USDT probe
	Force    bool   // of the return of a function: also in a program that this could end
}

// String returns the target as messages name it.
func (t Target) String() string {
	switch {
	case t.Category != "":
		return t.Category + "/" + t.Name
	case t.Provider != "":
		return t.Provider + ":" + t.Name + " in " + t.File
	case t.Symbol != "":
		return t.Symbol + " in " + t.File
	case t.File != "":
		return fmt.Sprintf("%#x in %s", t.Offset, t.File)
	}
	return t.Name
}

// Key is a label and the field that it shows.
type Key struct {
	Label string
	Field Field
}

// Field is a value of an event.
type Field struct {
	Name string // a field of a tracepoint, or one of the names below; arg1 and so on are arguments
	// Size in bytes and Signed are given for arguments and results. Size is 0 if the event determines it.
	Size   int
	Signed bool
}

// Names of fields that are not fields of a tracepoint.
const (
	Return   = "return"
	Errno    = "errno" // the error that a negative result stands for, else 0
	Comm     = "comm"
	CPU      = "cpu"
	Duration = "duration" // nanoseconds from entry to return
)

// Kind is the aggregation of the values of events.
type Kind int

// The kinds.
const (
	Events Kind = iota // they are counted
	Sum                // the values are added up
	Histogram
)

// Value is the measured value of a probe.
type Value struct {
	Kind  Kind
	Field Field
	Unit  string  // may be empty
	Scale float64 // factor that converts the field to the unit
	// The bounds of a histogram are the powers of two from First to Last, times Scale.
	First, Last int
}

// Filter selects events by comparing a field with a number.
type Filter struct {
	Field    Field
	Operator string // ==, !=, <, <=, >, >= or &
	Number   int64
}

// Family returns the name of the metric family.
func (p *Probe) Family() string {
	name := prefix + p.Name
	if p.Value.Unit != "" {
		name += "_" + p.Value.Unit
	}
	if p.Value.Kind == Histogram {
		return name
	}
	return name + "_total"
}

// problem is one fault of a file.
type problem struct {
	Line int
	Text string
}

// fileError lists all problems of a file.
type fileError struct {
	File     string
	Problems []problem
}

// Error implements error.
func (e *fileError) Error() string {
	var lines []string
	for _, p := range e.Problems {
		lines = append(lines, text.Terminal(fmt.Sprintf("%s:%d: %s", e.File, p.Line, p.Text)))
	}
	if len(lines) == 1 {
		return "reading probes: " + lines[0]
	}
	return fmt.Sprintf("reading probes: %d problems:\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// Read reads a file. The error names all problems, or the reason why the file cannot be read.
func Read(name string) ([]Probe, error) {
	data, err := inputfile.Read(name, maxFile)
	if err != nil {
		return nil, fmt.Errorf("reading probes: %w", err)
	}
	return parse(name, data)
}

// parse reads the text of a file of this name.
func parse(name string, data []byte) ([]Probe, error) {
	r := &reader{}
	probes := r.document(data)
	if len(r.problems) > 0 {
		return nil, &fileError{name, r.problems}
	}
	return probes, nil
}
