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
	for name, o := range map[string]Options{"addresses": {Locations: 100}, "bytes": {Bytes: 100 * (8 + 256)}} {
		o.Table, o.All = table, true
		r := New(o)
		for i := range 1000 {
			r.Add(&profiling.Sample{Process: profiling.Process{PID: os.Getpid()}, Kernel: []uint64{uint64(1000 + i)}, Samples: 1})
		}
		if len(r.samples) != 100 || r.dropped != 900 || r.Kept() != 1000 {
			t.Errorf("%s: %d stacks of %d addresses, %d samples dropped", name, len(r.samples), len(r.locations), r.dropped)
		}
	}
}
