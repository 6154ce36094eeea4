// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"errors"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/host"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/process"
	"github.com/teescope/teescope/internal/agent/tee/sgx/boundary/window"
	"github.com/teescope/teescope/internal/agent/workload"
)

// questioned returns breakpoints with one process that has some, and the kernel side's counter of that process.
func questioned(now *time.Time) (*Breakpoints, *process.Process, *counts) {
	table := process.NewTable(host.Processes{}, 4, func() time.Time { return *now })
	p := table.Add(7, workload.Identity{Name: "app", Kind: workload.Program}, process.Process{})
	n := &counts{Tree: 1}
	return &Breakpoints{
		Options: Options{Processes: table}, processes: map[uint32]*state{}, file: &window.File{},
		latest: func(uint32) (*counts, error) { return n, nil },
	}, p, n
}

// Whether breakpoints count the transitions of a process is not known before their counters were read again, however long
// that takes. Otherwise calls would be counted as transitions too. A process that inherited its breakpoints has no state yet.
func TestCountsIsUnknownUntilTheNextRead(t *testing.T) {
	now := time.Unix(1000, 0)
	b, p, n := questioned(&now)
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
	n.Enters = 1
	if counts, known := b.Counts(p); !counts || !known {
		t.Errorf("after an entry that was not read yet: %t, known %t", counts, known)
	}
}

// The entries of a process that has ended may not have been read yet. They must not be counted by its calls too.
func TestEntriesOfAnEndedProcessCountBeforeTheyAreRead(t *testing.T) {
	for enters, want := range map[uint64]bool{0: false, 6: true} {
		now := time.Unix(1000, 0)
		b, p, n := questioned(&now)
		p.Ended, n.Enters = true, enters
		if counts, known := b.Counts(p); counts != want || !known {
			t.Errorf("ended after %d entries: %t, known %t", enters, counts, known)
		}
	}
}

func TestProcessesWithoutBreakpointsAreCountedElsewhere(t *testing.T) {
	now := time.Unix(1000, 0)
	b, p, _ := questioned(&now)
	b.latest = func(uint32) (*counts, error) { return nil, nil }
	if counts, known := b.Counts(p); counts || !known {
		t.Errorf("without breakpoints: %t, known %t", counts, known)
	}
	b.latest = func(uint32) (*counts, error) { return &counts{Left: 1}, nil }
	if counts, known := b.Counts(p); counts || !known {
		t.Errorf("after it has run another program: %t, known %t", counts, known)
	}
	b.latest = func(uint32) (*counts, error) { return nil, errors.New("no answer") }
	if counts, known := b.Counts(p); counts || known {
		t.Errorf("when the counter cannot be read: %t, known %t", counts, known)
	}
	b.processes[7] = &state{refused: true}
	if counts, known := b.Counts(p); counts || !known {
		t.Errorf("refused: %t, known %t", counts, known)
	}
}
