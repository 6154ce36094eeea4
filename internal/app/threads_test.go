// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime"
	"testing"
)

// An agent runs on few CPUs of a large machine at once, and reads the counters of 64 CPUs and more with eight threads.
func TestAnAgentRunsOnFewCPUs(t *testing.T) {
	for cpus, want := range map[int]int{1: 1, 2: 1, 15: 1, 16: 2, 32: 4, 64: 8, 256: 8} {
		if got := threadsFor(cpus, cpus); got != want {
			t.Errorf("%d threads on %d CPUs, want %d", got, cpus, want)
		}
	}
	if got := threadsFor(64, 2); got != 2 {
		t.Errorf("%d threads on 64 CPUs with a quota of two, want 2", got)
	}
}

func TestTheEnvironmentSetsTheThreads(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
	for environment, want := range map[string]int{"": threadsFor(runtime.NumCPU(), 77), "77": 77} {
		t.Setenv("GOMAXPROCS", environment)
		runtime.GOMAXPROCS(77)
		if err := (fewThreads{}).Init(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("with GOMAXPROCS=%q there are %d threads, want %d", environment, got, want)
		}
	}
}
