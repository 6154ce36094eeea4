// SPDX-License-Identifier: Apache-2.0

package sampling

import "testing"

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
	if c[Syscall] != 40 || c[ContextSwitch] != 0 || c[PageFault] != 1 {
		t.Errorf("measured %v", c)
	}
	d := Demand{Calls: 1e6, Costs: c}
	if got, want := d.frequent(Full, false, 1), 1e6*(Syscall.KernelPath()+40).Seconds(); got != want {
		t.Errorf("a million calls take %v s, want %v", got, want)
	}
	if got, want := (Demand{Switches: 1e6}).always(), 1e6*(ContextSwitch.KernelPath()+assumed[ContextSwitch]).Seconds(); got != want {
		t.Errorf("a million switches take %v s, want %v", got, want)
	}
}
