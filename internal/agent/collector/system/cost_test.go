// SPDX-License-Identifier: Apache-2.0

package system

import (
	"testing"
	"time"
)

// The budget reckons with what was measured, and with what is assumed where too little was.
func TestTheBudgetReckonsWithWhatWasMeasured(t *testing.T) {
	var p programCosts
	from := [meters]runTime{meterCall: {Runs: 10, NS: 1000}, meterFault: {Runs: 5, NS: 5}}
	to := [meters]runTime{
		meterCall: {Runs: 10 + 2*leastRuns, NS: 1000 + 2*leastRuns*40},
		// Too few, and less than no time.
		meterSwitch: {Runs: leastRuns - 1, NS: 1e9}, meterFault: {Runs: 5 + leastRuns, NS: 1},
	}
	p.update(from, to)
	if p[meterCall] != 40 || p[meterSwitch] != 0 || p[meterFault] != 1 {
		t.Errorf("measured %v", p)
	}
	d := demand{calls: 1e6, programs: p}
	if got, want := d.frequent(levelFull, false, 1), 1e6*(eventPath[meterCall]+40).Seconds(); got != want {
		t.Errorf("a million calls take %v s, want %v", got, want)
	}
	if got, want := (demand{switches: 1e6}).always(), 1e6*(eventPath[meterSwitch]+assumedCosts[meterSwitch]).Seconds(); got != want {
		t.Errorf("a million switches take %v s, want %v", got, want)
	}
}

// On the real kernel: the programs measure themselves while they are told to, and not else.
func TestProgramsMeasureThemselves(t *testing.T) {
	c := start(t, Options{SyscallTime: true})
	path := program(t, "measured")
	if next := c.measure(); next != measureFor {
		t.Errorf("measures for %v", next)
	}
	run(t, job(path, "getppid", "20000"))
	if next := c.measure(); next != measureEvery-measureFor {
		t.Errorf("measures again after %v", next)
	}
	for _, of := range []int{meterCall, meterExit} {
		if p := c.programs[of]; p <= 0 || p > 10*time.Microsecond {
			t.Errorf("%s: a program of %v", eventNames[of], p)
		}
	}
	time.Sleep(20 * time.Millisecond) // a run that had begun has ended
	before := c.kernel.runTimes()
	run(t, job(path, "getppid", "1000"))
	if after := c.kernel.runTimes(); after != before {
		t.Errorf("measured while nobody asked: %v, then %v", before, after)
	}
	t.Logf("programs take %v", c.programs)
}
