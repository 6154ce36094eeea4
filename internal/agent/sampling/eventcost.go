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

// One event costs its workload the run of the program and the kernel's path to it (docs/decisions/overhead.md). A traced system
// call costs much more than the program, because the kernel leaves its fast path. Both are measured where the agent runs. If that
// fails, these constants of one machine are used.
var (
	assumedPath = [Events]time.Duration{104, 19, 30, 95, 23}
	// assumed are the costs of the programs, with timing at the end of a call.
	assumed = [Events]time.Duration{12, 105, 80, 40, 10}
	// inLoop is the cost of events with their programs in loops on the machine of the constants, and loopAlone is the time
	// of such an event without its probe, in nanoseconds.
	inLoop    = [Events]float64{ContextSwitch: 72, PageFault: 135}
	loopAlone = [Events]float64{ContextSwitch: 3550, PageFault: 1790}
)

const (
	// inServers is the ratio of the kernel's path in servers to that in a loop, where caches stay warm. It was measured for
	// system calls, and is assumed for the others.
	inServers = 1.33
	// A measured cost of an event in nanoseconds is plausible between these bounds. The cost of a system call is low if another
	// tracer already causes most of the path. Emulated processors need microseconds.
	leastPlausible, mostPlausible = 5, 20_000
	// The cost of another event is a few percent of its loop. It is plausible if it differs from the constant by less than this
	// factor, after the constant is scaled as the loop without the probe.
	mostFactor = 3
	// slowPath is the part of a call's cost, in nanoseconds, that exists already if the thread's calls are filtered or traced by
	// others.
	slowPath = 40
	// mostScale is the largest ratio between two machines for which the constants of one are scaled.
	mostScale = 100
)

// RunTime is the number of measured runs of a program and their total time.
type RunTime struct{ Runs, NS uint64 }

// leastRuns is the minimum number of runs of a measurement.
const leastRuns = 1000

// EventCosts is the cost of one event of each kind. A part is 0 before it was measured.
type EventCosts struct {
	Program [Events]time.Duration // one run of the program
	Path    [Events]time.Duration // the kernel's path to it in a loop
	Scale   float64               // cost of other events, relative to the constants; 0 is 1
}

// Measured takes the time of one event in a loop, in nanoseconds, without its probe and with it. It returns false if the
// difference is not plausible. Then the constant stays. The cost of the program must be known before.
func (c *EventCosts) Measured(e Event, without, with float64) bool {
	cost, least, most := with-without, float64(leastPlausible), float64(mostPlausible)
	if e != Syscall {
		scaled := inLoop[e] * without / loopAlone[e]
		least, most = scaled/mostFactor, scaled*mostFactor
	}
	if without <= 0 || cost < least || cost > most {
		return false
	}
	c.Path[e] = max(1, time.Duration(cost)-c.program(e))
	return true
}

// ScaleOthers scales the costs of events that were not measured as those of switches and faults. System calls are not used
// for this, because other events have no fast path.
func (c *EventCosts) ScaleOthers() {
	sum, n := 0.0, 0.0
	for _, e := range []Event{ContextSwitch, PageFault} {
		if c.Path[e] > 0 {
			sum, n = sum+float64(c.Path[e]+c.program(e))/inLoop[e], n+1
		}
	}
	if n > 0 {
		c.Scale = min(mostScale, max(1.0/mostScale, sum/n))
	}
}

// SlowPath returns the time for which a system call takes longer on the kernel's slow path, in nanoseconds. It is a constant, scaled.
func (c *EventCosts) SlowPath() float64 { return slowPath * c.scale() }

// Relative returns how much slower this machine is than the machine of the constants: the ratio of the costs of events that
// were not measured to the constants.
func (c *EventCosts) Relative() float64 { return c.scale() }

// scale returns the ratio of the costs of events that were not measured to the constants.
func (c *EventCosts) scale() float64 {
	if c.Scale == 0 {
		return 1
	}
	return c.Scale
}

func (c *EventCosts) program(e Event) time.Duration {
	if c.Program[e] > 0 {
		return c.Program[e]
	}
	return time.Duration(float64(assumed[e]) * c.scale())
}

// KernelPath returns the time of the kernel's path to the program of an event in a loop.
func (c *EventCosts) KernelPath(e Event) time.Duration {
	if c.Path[e] > 0 {
		return c.Path[e]
	}
	return time.Duration(float64(assumedPath[e]) * c.scale())
}

// InLoop returns the CPU time of one event in a loop, in nanoseconds.
func (c *EventCosts) InLoop(e Event) float64 { return float64(c.KernelPath(e) + c.program(e)) }

// InServers returns the CPU time of one event in nanoseconds, outside of a loop that is measured at its fastest.
func (c *EventCosts) InServers(e Event) float64 {
	return inServers*float64(c.KernelPath(e)) + float64(c.program(e))
}

// of returns the CPU time of one event in seconds.
func (c *EventCosts) of(e Event) float64 { return c.InServers(e) / float64(time.Second) }

// Update computes the costs of the programs from their run times at two moments.
func (c *EventCosts) Update(from, to [Events]RunTime) {
	for i := range c.Program {
		runs := to[i].Runs - from[i].Runs
		if runs < leastRuns {
			continue
		}
		// The time may be negative, if reading the clock took longer than usual.
		ns := max(1, int64(to[i].NS-from[i].NS)/int64(runs))
		c.Program[i] = time.Duration(ns)
	}
}
