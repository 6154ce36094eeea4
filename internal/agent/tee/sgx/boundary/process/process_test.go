// SPDX-License-Identifier: Apache-2.0

package process

import (
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
