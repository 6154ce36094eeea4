// SPDX-License-Identifier: Apache-2.0

package analysis

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// CodeEvent is what the stacks are taken of that show which code a finding is about: an event of "teescope profile record".
type CodeEvent string

// The events. The empty one means that no code is the cause.
const (
	CodeCPU    CodeEvent = "cpu"
	CodeCalls  CodeEvent = "syscalls"
	CodeOCALLs CodeEvent = "ocalls"
	CodeECALLs CodeEvent = "ecalls"
	CodeWaits  CodeEvent = "off-cpu"
)

// Code leads to the code that a finding is about.
type Code struct {
	Event CodeEvent `json:"event"`
	// Command records the stacks of the event, on the workload's machine, and draws them.
	Command string `json:"command"`
	// Profile is the flame graph of the workload's CPU time in the window: a path of the server, or its address. It is absent
	// if the server keeps no profile with a sample of the workload.
	Profile string `json:"profile,omitempty"`
	// Change is the difference from the window before that in which the finding was first seen, in the same way.
	Change string `json:"change,omitempty"`
	// Functions are those of the workload's samples in the window. It is absent if the server keeps fewer than 20 of them, and
	// for other events than CPU time and system calls.
	Functions *Functions `json:"functions,omitempty"`
	Lines     []string   `json:"lines,omitempty"` // the functions in words
}

// CodeKey is what code is looked for: that of an event of a workload. An empty workload is the whole machine.
type CodeKey struct {
	Event    CodeEvent
	Workload string
}

// Functions are the functions with the most samples. For CPU time, a sample counts for the function that was running. For system
// calls, only samples in the kernel count, for the function that called it.
type Functions struct {
	Samples int        `json:"samples"` // of all functions
	Unnamed float64    `json:"unnamed"` // share of the samples whose function has no name, such as those in an enclave
	Top     []Function `json:"top"`     // at most 5, the largest share first
}

// Function is a function with its share of the samples. Low and High are the ends of its 95 % interval.
type Function struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Key returns what code the finding is about, or false if it is about none.
func (f *Finding) Key() (CodeKey, bool) {
	if f.Code == nil {
		return CodeKey{}, false
	}
	return CodeKey{f.Code.Event, f.Workload}, true
}

// recordFor is how long the command takes samples.
const recordFor = "30s"

// plain matches what a shell takes as it is.
var plain = regexp.MustCompile(`^[\w.:@/+-]+$`)

// NewCode returns how the code is found, or nil without an event. An empty workload is the whole machine.
func NewCode(event CodeEvent, workload string) *Code {
	if event == "" {
		return nil
	}
	parts := []string{"sudo teescope profile record"}
	if event != CodeCPU {
		parts = append(parts, "--event "+string(event))
	}
	parts = append(parts, "--for "+recordFor)
	if workload != "" {
		rule := "workload=" + workload
		if !plain.MatchString(workload) {
			rule = "'" + strings.ReplaceAll(rule, "'", `'\''`) + "'"
		}
		parts = append(parts, "--watch "+rule)
	}
	return &Code{Event: event, Command: strings.Join(append(parts, "-o code.html"), " ")}
}

// Linked returns the code with the functions that were found, and with links to the profiles that a server keeps. held reports
// whether it has a sample of the finding's workload in a time.
func (f *Finding) Linked(window time.Duration, found *Functions, held func(workload string, start, end time.Time) bool) *Code {
	if f.Code == nil || !held(f.Workload, f.LastSeen.Add(-window), f.LastSeen) {
		return f.Code
	}
	code := *f.Code
	code.Functions = found
	q := url.Values{"format": {"html"}}
	if f.Workload != "" {
		q.Set("workload", f.Workload)
	}
	set := func(prefix string, end time.Time) {
		q.Set(prefix+"start", strconv.FormatInt(end.Add(-window).Unix(), 10))
		q.Set(prefix+"end", strconv.FormatInt(end.Unix(), 10))
	}
	set("", f.LastSeen)
	const path = "/api/profiles/merged?"
	code.Profile = path + q.Encode()
	if before := f.FirstSeen.Add(-window); held(f.Workload, before.Add(-window), before) {
		set("base.", before)
		code.Change = path + q.Encode()
	}
	return &code
}
