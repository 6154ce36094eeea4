// SPDX-License-Identifier: Apache-2.0

package sampling

import "time"

// Event is a kind of event on which a program runs.
type Event int

// The events whose cost is budgeted.
const (
	Syscall Event = iota
	SyscallExit
	ContextSwitch
	PageFault
	PageCache
	Events // number of kinds
)

var eventNames = [Events]string{"syscall", "syscall_exit", "context_switch", "page_fault", "page_cache"}

func (e Event) String() string { return eventNames[e] }

// One event costs its workload the run of the program and the kernel's path to it (docs/decisions/overhead.md). The
// path was measured as the additional CPU time of servers per operation, minus the time of the program. A traced system
// call costs much more than the program, because the kernel leaves its fast path.
var (
	kernelPath = [Events]time.Duration{138, 25, 40, 35, 30}
	// assumed are the costs of the programs before they are measured, with timing at the end of a call.
	assumed = [Events]time.Duration{12, 105, 80, 15, 10}
)

// KernelPath returns the time of the kernel's path to the program of an event.
func (e Event) KernelPath() time.Duration { return kernelPath[e] }

// RunTime is the number of measured runs of a program and their total time.
type RunTime struct{ Runs, NS uint64 }

// leastRuns is the minimum number of runs of a measurement.
const leastRuns = 1000

// EventCosts is the time of one run of each program. It is 0 before it was measured.
type EventCosts [Events]time.Duration

// of returns the CPU time of one event in seconds.
func (c *EventCosts) of(e Event) float64 {
	program := c[e]
	if program == 0 {
		program = assumed[e]
	}
	return (kernelPath[e] + program).Seconds()
}

// Update computes the costs from the run times at two moments.
func (c *EventCosts) Update(from, to [Events]RunTime) {
	for i := range c {
		runs := to[i].Runs - from[i].Runs
		if runs < leastRuns {
			continue
		}
		// The time may be negative, if reading the clock took longer than usual.
		ns := max(1, int64(to[i].NS-from[i].NS)/int64(runs))
		c[i] = time.Duration(ns)
	}
}
