// SPDX-License-Identifier: Apache-2.0

// Package codelink names the stacks that show which code a finding is about, and the command that records them.
//
// It does not take samples or read profiles.
package codelink

import (
	"strings"

	"github.com/teescope/teescope/internal/lib/lazy"
)

// Event is the event of "teescope profile record" whose stacks show the code that a finding is about.
type Event string

// The events. The empty one means that no code is the cause.
const (
	CPU    Event = "cpu"
	Calls  Event = "syscalls"
	OCALLs Event = "ocalls"
	ECALLs Event = "ecalls"
	AEXs   Event = "aex"
	Waits  Event = "off-cpu"
)

// Events lists the events.
func Events() []Event { return []Event{CPU, Calls, OCALLs, ECALLs, AEXs, Waits} }

// Reason is the reason of the waits that a finding is about. The empty one means all waits except those for a CPU.
type Reason string

// The reasons.
const (
	ForLock Reason = "lock"
	ForEPC  Reason = "epc"
	ForCPU  Reason = "cpu"
)

// Code leads to the code that a finding is about.
type Code struct {
	Event  Event  `json:"event"`
	Reason Reason `json:"reason,omitempty"` // of off-cpu
	// Command records the stacks of the event in code.pb.gz, on the workload's machine, and draws them as code.html.
	Command string `json:"command"`
	// Profile is the flame graph of the workload's samples in the window, of the event or else of CPU time: a path of the server, or its
	// address. It is absent if the server keeps no profile with a sample of the workload.
	Profile string `json:"profile,omitempty"`
	// Change is the difference from the window before that in which the finding was first seen, in the same way.
	Change string `json:"change,omitempty"`
	// Functions are those of the workload's samples in the window. It is absent if there are fewer than 20 of them.
	Functions *Functions `json:"functions,omitempty"`
	Lines     []string   `json:"lines,omitempty"` // the functions in words
}

// Key selects code: the stacks of an event of a workload. An empty workload is the whole machine.
type Key struct {
	Event    Event
	Workload string
	Reason   Reason
}

// Functions are the functions with the most samples. A sample counts
//   - for the function that was running, of CPU time,
//   - for the function outside that was called, of OCALLs,
//   - for the function of the program that calls, of system calls and ECALLs,
//   - for the function of the program that waits, or had entered the enclave, of waits and asynchronous exits.
//
// Functions of the C library and of the runtime of the enclave, which only pass a call on, do not count as functions of the program.
// If there are only samples of CPU time, those in the kernel stand for system calls.
type Functions struct {
	Event   Event      `json:"event,omitempty"` // that the samples were taken of, other than CPU time
	Samples int        `json:"samples"`         // of all functions
	Unnamed float64    `json:"unnamed"`         // share of the samples whose function has no name, such as those in an enclave
	Top     []Function `json:"top"`             // at most 5, the largest share first
}

// Function is a function with its share of the samples. Low and High are the ends of its 95 % interval.
type Function struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// From is the place that most of the samples came from: of the call within the function, or of the call of the function for
	// CPU time and OCALLs. It is absent if the profile has neither lines nor addresses.
	From *Place `json:"from,omitempty"`
}

// Place is a place in the code of a program.
type Place struct {
	Function string  `json:"function,omitempty"` // absent if it is the same function, or has no name
	Site     string  `json:"site"`               // FILE:LINE, or FILE+OFFSET of the compiled program or library
	Share    float64 `json:"share"`              // of the samples of the function
}

const (
	// recordFor is how long the command takes samples.
	recordFor = "30s"
	// recorded is the file of the command. Its format is one that "teescope analyze --profile" reads.
	recorded = "code.pb.gz"
)

// plain matches a word that a shell does not change.
var plain = lazy.Regexp(`^[\w.:@/+-]+$`)

// New returns how the code is found, or nil without an event. An empty workload is the whole machine.
func New(event Event, workload string) *Code {
	if event == "" {
		return nil
	}
	parts := []string{"sudo teescope profile record"}
	if event != CPU {
		parts = append(parts, "--event "+string(event))
	}
	parts = append(parts, "--for "+recordFor)
	if workload != "" {
		rule := "workload=" + workload
		if !plain().MatchString(workload) {
			rule = "'" + strings.ReplaceAll(rule, "'", `'\''`) + "'"
		}
		parts = append(parts, "--watch "+rule)
	}
	parts = append(parts, "-o "+recorded, "&& sudo teescope profile convert", recorded, "code.html")
	return &Code{Event: event, Command: strings.Join(parts, " ")}
}
