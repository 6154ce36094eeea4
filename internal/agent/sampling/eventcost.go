// SPDX-License-Identifier: Apache-2.0

package sampling

import "time"

// Event is a kind of event that a program runs on.
type Event int

// The events that cost enough to be budgeted.
const (
	Syscall Event = iota
	SyscallExit
	ContextSwitch
	PageFault
	PageCache
	Events // how many there are
)

var eventNames = [Events]string{"syscall", "syscall_exit", "context_switch", "page_fault", "page_cache"}

func (e Event) String() string { return eventNames[e] }

// One event costs the workload that it happens to two parts (docs/decisions/overhead.md): the kernel's path to the program,
// found as server CPU per operation with and without it less what the program takes, and the program. A system call that
// is traced costs much more than the program: the kernel leaves its fast path.
var (
	kernelPath = [Events]time.Duration{138, 25, 40, 35, 30}
	// assumed are the costs of the programs before they are measured. The end of a call is timed.
	assumed = [Events]time.Duration{12, 105, 80, 15, 10}
)

// KernelPath is what the kernel takes to reach the program on an event.
func (e Event) KernelPath() time.Duration { return kernelPath[e] }

// RunTime is how often a program has run while it was measured, and for how long.
type RunTime struct{ Runs, NS uint64 }

// leastRuns is how many runs a measurement needs.
const leastRuns = 1000

// EventCosts is what one run of each program takes; 0 where it has not been measured.
type EventCosts [Events]time.Duration

// of is the CPU time of one event, in seconds.
func (c *EventCosts) of(e Event) float64 {
	program := c[e]
	if program == 0 {
		program = assumed[e]
	}
	return (kernelPath[e] + program).Seconds()
}

// Update takes what has run from one moment to another.
func (c *EventCosts) Update(from, to [Events]RunTime) {
	for i := range c {
		runs := to[i].Runs - from[i].Runs
		if runs < leastRuns {
			continue
		}
		// The time is less than zero where the clock was read more slowly than usual.
		ns := max(1, int64(to[i].NS-from[i].NS)/int64(runs))
		c[i] = time.Duration(ns)
	}
}
