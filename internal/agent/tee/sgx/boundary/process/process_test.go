// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/workload"
)

// A process beyond the limit of workloads counts as "other" until a name is free.
func TestAProcessIsPromotedWhenANameIsFree(t *testing.T) {
	now := time.Unix(1000, 0)
	table := NewTable(host.Processes{}, 1, func() time.Time { return now })
	named := func(name string) workload.Identity { return workload.Identity{Name: name, Kind: workload.Program} }
	first, second := table.Add(1, named("first"), Process{}), table.Add(2, named("second"), Process{})
	table.Promote()
	if first.Workload.Name != "first" || second.Workload != table.Other() {
		t.Fatalf("the processes count into %q and %q", first.Workload.Name, second.Workload.Name)
	}
	first.Ended = true
	forgotten := 0
	if err := table.RemoveEnded(func(*Process) error { forgotten++; return nil }); err != nil || forgotten != 1 {
		t.Fatalf("%d forgotten, %v", forgotten, err)
	}
	now = now.Add(time.Hour)
	table.Promote()
	if table.Len() != 1 || table.Known(1) != nil || table.Known(2).Workload.Name != "second" {
		t.Errorf("%d processes, the second counts into %q", table.Len(), second.Workload.Name)
	}
}

// A pass looks a process up once, however many counters it has.
func TestAPassLooksUpAProcessOnce(t *testing.T) {
	proc := t.TempDir()
	thread := filepath.Join(proc, "7", "task", "7")
	if err := os.MkdirAll(thread, 0o755); err != nil {
		t.Fatal(err)
	}
	const stat = "7 (sh) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0\n"
	if err := os.WriteFile(filepath.Join(thread, "stat"), []byte(stat), 0o644); err != nil {
		t.Fatal(err)
	}
	table := NewTable(host.New(proc, proc, nil), 1, time.Now)
	if table.Get(7) != nil || !table.Runs(7) { // it has no program
		t.Fatal("the process is known, or does not run")
	}
	if err := os.RemoveAll(filepath.Join(proc, "7")); err != nil {
		t.Fatal(err)
	}
	if !table.Runs(7) {
		t.Error("the process was looked up again")
	}
	if table.BeginPass(); table.Runs(7) {
		t.Error("the next pass did not look it up")
	}
}
