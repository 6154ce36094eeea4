// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/workload"
)

// Whether breakpoints count the crossings of a process is not known before their counters were read again, however long
// that takes. Otherwise calls would be counted as crossings too.
func TestCountsIsUnknownUntilTheNextRead(t *testing.T) {
	now := time.Unix(1000, 0)
	table := process.NewTable(host.Processes{}, 4, func() time.Time { return now })
	p := table.Add(7, workload.Identity{Name: "app", Kind: workload.Program}, process.Process{})
	b := &Breakpoints{Options: Options{Processes: table}, processes: map[uint32]*state{7: {tree: &tree{}}}}
	if counts, known := b.Counts(p); counts || known {
		t.Errorf("at first: %t, known %t", counts, known)
	}
	now = now.Add(time.Minute)
	if counts, known := b.Counts(p); counts || known {
		t.Errorf("after a minute without a read: %t, known %t", counts, known)
	}
	b.reads++
	if counts, known := b.Counts(p); counts || !known {
		t.Errorf("after a read without an entry: %t, known %t", counts, known)
	}
	b.processes[7].enters = true
	if counts, known := b.Counts(p); !counts || !known {
		t.Errorf("after an entry: %t, known %t", counts, known)
	}
}
