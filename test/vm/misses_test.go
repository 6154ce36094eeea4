// SPDX-License-Identifier: Apache-2.0

//go:build vm

package vm

import "testing"

// From Linux 7.0 on, threads preempt each other in programs on tracepoints, and the kernel does not run the program for the second
// thread. The level does not claim exact counts then.
func TestTheLevelIsIncompleteAfterMissedRuns(t *testing.T) {
	r := boot(t, trial{kernel: kernel(t, "7.2"), files: image(t), cpus: 2, scenario: "misses", line: preempted})
	families := r.exposition(t, "exposition")
	missed := sum(families, "teescope_bpf_program_missed_runs_total")
	t.Logf("%v runs were missed", missed)
	for level, want := range map[string]float64{"full": 0, "incomplete": 1} {
		if got := sum(families, "teescope_self_level", "level", level); missed == 0 || got != want {
			t.Errorf("after %v missed runs the level %s is %v, want %v", missed, level, got, want)
		}
	}
}
