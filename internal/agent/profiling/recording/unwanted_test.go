// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"log/slog"
	"os"
	"testing"

	"github.com/teescope/teescope/internal/agent/profiling"
	"github.com/teescope/teescope/internal/agent/profiling/symbol"
	"github.com/teescope/teescope/internal/lib/hostfs"
	"github.com/teescope/teescope/internal/lib/hostfs/reader"
	"github.com/teescope/teescope/internal/lib/watch"
)

// TestProcessesAreUnwantedOnlyAfterALook: a process that has another name since the sample was taken may be wanted by it.
func TestProcessesAreUnwantedOnlyAfterALook(t *testing.T) {
	proc, sys := hostfs.At("/proc"), hostfs.At("/sys")
	reads := reader.New(reader.Options{Proc: proc, Cgroup: "/sys/fs/cgroup", Log: slog.New(slog.DiscardHandler)})
	rule, err := watch.Parse("comm=nothing-has-this")
	if err != nil {
		t.Fatal(err)
	}
	table := symbol.New(symbol.Options{Proc: proc, Sys: sys, Cgroup: "/sys/fs/cgroup", Reads: reads, Watch: []watch.Rule{rule}})
	defer func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}()
	unwanted := 0
	r := New(Options{Table: table, Unwanted: func(profiling.Process) { unwanted++ }})
	self := proc.Self()
	stat, err := self.Thread(os.Getpid()).Stat()
	if err != nil {
		t.Fatal(err)
	}
	comm, err := self.Comm()
	if err != nil {
		t.Fatal(err)
	}
	for want, name := range []string{"earlier", comm} { // in this order: a process that was inspected stays known
		unwanted = 0
		r.Add(&profiling.Sample{Process: profiling.Process{PID: os.Getpid(), Start: stat.Started}, TID: os.Getpid(), Name: name, Samples: 1})
		if unwanted != want {
			t.Errorf("as %q: unwanted %d times, want %d", name, unwanted, want)
		}
	}
}

// TestARecordingIsBounded adds stacks that each have different addresses.
func TestARecordingIsBounded(t *testing.T) {
	proc, sys := hostfs.At("/proc"), hostfs.At("/sys")
	reads := reader.New(reader.Options{Proc: proc, Cgroup: "/sys/fs/cgroup", Log: slog.New(slog.DiscardHandler)})
	table := symbol.New(symbol.Options{Proc: proc, Sys: sys, Cgroup: "/sys/fs/cgroup", Reads: reads})
	defer func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	}()
	// Further samples lose their stacks. They share a sample, for which the newest one with a stack makes room. None is dropped.
	for _, tt := range []struct {
		Options
		samples int
		dropped uint64
	}{
		{Options{Locations: 100, All: true}, 101, 0},
		{Options{Bytes: 100 * (8 + 256), All: true}, 100, 0},
		{Options{Locations: 100}, 101, 0},
		{Options{Bytes: 100 * (8 + 256)}, 100, 0},
		{Options{Stacks: 100}, 100, 0},
	} {
		tt.Table = table
		r := New(tt.Options)
		for i := range 1000 {
			r.Add(&profiling.Sample{Process: profiling.Process{PID: os.Getpid()}, Descendant: true, Kernel: []uint64{uint64(1000 + i)}, Samples: 1})
		}
		if len(r.samples) != tt.samples || r.dropped != tt.dropped || r.Kept() != 1000 {
			t.Errorf("%+v: %d stacks of %d addresses, %d samples dropped", tt.Options, len(r.samples), len(r.locations), r.dropped)
		}
	}
}
