// SPDX-License-Identifier: Apache-2.0

// Package condition reads what a machine and a program were like while a run was recorded, compares the conditions of runs,
// and reports whether they were steady.
//
// A condition that cannot be read is absent. Values of environment variables are kept only if they are in a list of
// settings of performance, because others may be secrets. All reads of /proc and /sys go through roots that are values.
//
// The package does not change anything, measure programs or depend on run files. It starts one program, git, and only
// when GitState is called.
package condition

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/text"
)

// Kind says what a difference of a condition means.
type Kind string

const (
	// Identity is of the machine: a difference can explain a difference of the results of any program.
	Identity Kind = "identity"
	// Program is of what was recorded: a difference is often what a comparison is about.
	Program Kind = "program"
	// State may vary from one moment to the next.
	State Kind = "state"
	// Note is for people. It is not compared.
	Note Kind = "note"
)

// Condition is one property of the machine or of the program.
type Condition struct {
	Name  string `json:"name"` // unique: "kernel", "mitigation.meltdown", "env.GOGC"
	Value string `json:"value"`
	Kind  Kind   `json:"kind"`
}

// Host is the machine: its /proc and /sys.
type Host struct{ Proc, Sys hostfs.Root }

// ThisHost is the machine that the program runs on.
func ThisHost() Host { return Host{Proc: hostfs.At("/proc"), Sys: hostfs.At("/sys")} }

// maxValue bounds a value in bytes.
const maxValue = 400

// list collects conditions.
type list []Condition

// add adds a condition, if its value is known.
func (l *list) add(kind Kind, name, value string) {
	if value = text.Short(text.Label(strings.TrimSpace(value)), maxValue); value != "" {
		*l = append(*l, Condition{Name: text.Short(text.Label(name), maxValue), Value: value, Kind: kind})
	}
}

// Read returns the conditions of a machine and of a program on it, those that are known.
func Read(host Host, program Subject) []Condition {
	var all list
	machine(&all, host)
	program.read(&all, host)
	return all
}

// ReadSubject returns the conditions of a program alone, those that are known.
func ReadSubject(host Host, program Subject) []Condition {
	var all list
	program.read(&all, host)
	return all
}

// Difference is a condition that two runs do not share.
type Difference struct {
	Name string `json:"name"`
	A    string `json:"a"` // empty if it is not known
	B    string `json:"b"` // empty if it is not known
	Kind Kind   `json:"kind"`
	// Explains reports that the difference can explain a difference in performance although the recorded programs are
	// equal. It is false if one of the values is not known.
	Explains bool `json:"explains"`
}

// tolerance is the relative difference of sizes of memory that counts as equal. The kernel's own share of the memory
// differs between kernels by less.
const tolerance = 0.02

// Differences compares the conditions of two runs by name. It returns the conditions of the machine and of the program
// that differ, or that only one run has, in the order of a, then of b. Neither states nor notes are compared.
func Differences(a, b []Condition) []Difference {
	of := func(all []Condition, name string) string {
		i := slices.IndexFunc(all, func(c Condition) bool { return c.Name == name })
		if i < 0 {
			return ""
		}
		return all[i].Value
	}
	var found []Difference
	for i, c := range slices.Concat(a, b) {
		if c.Kind != Identity && c.Kind != Program || i >= len(a) && of(a, c.Name) != "" {
			continue
		}
		d := Difference{Name: c.Name, A: of(a, c.Name), B: of(b, c.Name), Kind: c.Kind}
		if d.A == d.B || alike(d) {
			continue
		}
		d.Explains = c.Kind == Identity && d.A != "" && d.B != ""
		found = append(found, d)
	}
	return found
}

// affinity is the name of the CPUs that a program may use, and the end of that of a server.
const affinity = "affinity"

// EPCOthers is the name of the condition that says how much of the enclave page cache others used, in percent.
const EPCOthers = "epc_others_percent"

// alike reports whether two sizes or shares differ by less than a tolerance, and whether two lists have as many CPUs: which ones a container
// or a job gets differs from time to time.
func alike(d Difference) bool {
	if strings.HasSuffix(d.Name, affinity) {
		a, err1 := hostfs.ParseCPUs(d.A)
		b, err2 := hostfs.ParseCPUs(d.B)
		return err1 == nil && err2 == nil && len(a) == len(b)
	}
	a, err1 := strconv.ParseFloat(d.A, 64)
	b, err2 := strconv.ParseFloat(d.B, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	switch d.Name {
	case memoryName:
		return math.Abs(a-b) <= tolerance*max(a, b)
	case EPCOthers:
		return math.Abs(a-b) <= 100*epcLimit
	}
	return false
}
