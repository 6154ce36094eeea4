// SPDX-License-Identifier: Apache-2.0

package system

import (
	"sync/atomic"
	"time"
)

// The programs on frequent events measure themselves for a second now and then: the kernel's own statistics
// need a privilege that the agent gives up after its start, time the programs of everybody, and read the clock
// as often.
const (
	measureFirst = 10 * time.Second
	measureEvery = 30 * time.Second
	measureFor   = time.Second
	// leastRuns: fewer say nothing.
	leastRuns = 1000
)

// eventNames are the values of the label event.
var eventNames = [meters]string{"syscall", "syscall_exit", "context_switch", "page_fault", "page_cache"}

// What one event costs the workload that it happens to (docs/decisions/overhead.md): what the kernel takes to
// come to the program, found as server CPU per operation with and without it less what the program takes, and
// the program. A system call that is traced costs much more than the program: the kernel leaves its fast path.
var (
	eventPath = [meters]time.Duration{138, 25, 40, 35, 30}
	// assumedCosts are those of the programs before they are measured. The end of a call is timed.
	assumedCosts = programCosts{12, 105, 80, 15, 10}
)

// programCosts is what one run of each program takes; 0 where it has not been measured.
type programCosts [meters]time.Duration

// event is the CPU time of one event, in seconds.
func (p *programCosts) event(of int) float64 {
	program := p[of]
	if program == 0 {
		program = assumedCosts[of]
	}
	return (eventPath[of] + program).Seconds()
}

// measure begins or ends a measurement, and says when to be called again.
func (c *Collector) measure() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kernel == nil {
		return measureEvery
	}
	on := &c.kernel.controls[0].Metering
	if atomic.LoadUint64(on) == 0 {
		c.measured = c.kernel.runTimes()
		atomic.StoreUint64(on, 1)
		return measureFor
	}
	atomic.StoreUint64(on, 0)
	c.programs.update(c.measured, c.kernel.runTimes())
	return measureEvery - measureFor
}

// update takes what has run from one moment to another.
func (p *programCosts) update(from, to [meters]runTime) {
	for i := range p {
		runs := to[i].Runs - from[i].Runs
		if runs < leastRuns {
			continue
		}
		// Less than no time is a clock that was read more slowly than usual.
		ns := max(1, int64(to[i].NS-from[i].NS)/int64(runs))
		p[i] = time.Duration(ns)
	}
}

// runTimes adds up what all CPUs have measured.
func (k *kernelSide) runTimes() (sum [meters]runTime) {
	for cpu := range k.cpus {
		for i, t := range k.cpus[cpu].RunTimes {
			sum[i].Runs += t.Runs
			sum[i].NS += t.NS
		}
	}
	return sum
}
