// SPDX-License-Identifier: Apache-2.0

package sampling

import (
	"math"
	"testing"
	"time"
)

// Measured costs are used, and assumed costs after too few runs.
func TestCostsAreThoseThatWereMeasured(t *testing.T) {
	var c EventCosts
	from := [Events]RunTime{Syscall: {Runs: 10, NS: 1000}, PageFault: {Runs: 5, NS: 5}}
	to := [Events]RunTime{
		Syscall: {Runs: 10 + 2*leastRuns, NS: 1000 + 2*leastRuns*40},
		// Too few runs, and a negative time.
		ContextSwitch: {Runs: leastRuns - 1, NS: 1e9}, PageFault: {Runs: 5 + leastRuns, NS: 1},
	}
	c.Update(from, to)
	if c.Program[Syscall] != 40 || c.Program[ContextSwitch] != 0 || c.Program[PageFault] != 1 {
		t.Errorf("measured %v", c)
	}
	d := Demand{Calls: 1e6, Costs: c}
	if got, want := d.frequent(Full, false, 1), 1e6*(138.32+40)/1e9; math.Abs(got-want) > 1e-6 {
		t.Errorf("a million calls take %v s, want %v", got, want)
	}
	if got, want := (Demand{Switches: 1e6}).always(), 1e6*(39.9+80)/1e9; math.Abs(got-want) > 1e-6 {
		t.Errorf("a million switches take %v s, want %v", got, want)
	}
}

// Costs that were measured at the start replace the constants, unless they are not plausible. Those of other events are
// scaled by switches and faults, and not by calls.
func TestCostsAreThoseOfThisMachine(t *testing.T) {
	var c EventCosts
	for _, of := range []struct{ without, with float64 }{
		{200, 204}, {200, 100}, {0, 100}, {200, 30_000},
	} {
		if c.Measured(Syscall, of.without, of.with) || c.InLoop(Syscall) != 116 {
			t.Errorf("a call costs %.0f ns after times of %.0f and %.0f", c.InLoop(Syscall), of.without, of.with)
		}
	}
	if c.Measured(PageFault, 1790, 1830) || c.Measured(PageFault, 1790, 2390) || c.Measured(ContextSwitch, 4700, 5200) {
		t.Error("noise is plausible")
	}
	if !c.Measured(Syscall, 200, 260) || c.InLoop(Syscall) != 60 {
		t.Errorf("a call costs %.0f ns, measured were 60", c.InLoop(Syscall))
	}
	if c.ScaleOthers(); c.scale() != 1 {
		t.Errorf("other events are scaled by %v because of system calls", c.scale())
	}
	c.Program[PageFault] = 100
	if !c.Measured(PageFault, 1790, 2060) {
		t.Error("a fault of 270 ns is not plausible")
	}
	c.ScaleOthers()
	if c.scale() != 2 || c.KernelPath(PageCache) != 46 || c.KernelPath(PageFault) != 170 {
		t.Errorf("a scale of %v, the page cache %v, a fault %v", c.scale(), c.KernelPath(PageCache), c.KernelPath(PageFault))
	}
	if got := (Demand{Others: 0.1, Costs: c}).always(); math.Abs(got-0.2) > 1e-9 {
		t.Errorf("0.1 s of rare events take %v s here, want twice as much", got)
	}
	if got := c.SlowPath(); got != 80 {
		t.Errorf("the slow path of a slow machine takes %v ns", got)
	}
	// A call that another tracer made slow costs a fraction, so that more are counted within the same budget.
	budget := Governor{Budget: 0.01, CPUs: 2}
	if l := budget.Decide(time.Unix(1000, 0), Demand{Calls: 300_000, Costs: c}); l != Sampled {
		t.Errorf("300,000 calls of 60 ns: %s", l)
	}
	c.Program[Syscall] = 7
	if !c.Measured(Syscall, 400, 420) {
		t.Error("a call of 20 ns beside another tracer is not plausible")
	}
	budget = Governor{Budget: 0.01, CPUs: 2}
	if l := budget.Decide(time.Unix(1000, 0), Demand{Calls: 300_000, Costs: c}); l != Full {
		t.Errorf("300,000 calls of 20 ns: %s", l)
	}
}
