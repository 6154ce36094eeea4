// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"log/slog"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/privilege"
)

func TestSpending(t *testing.T) {
	at := time.Unix(1000, 0)
	s := spending{budget: 0.01, cpus: 4}
	for _, step := range []struct {
		name    string
		seconds int
		spent   time.Duration
		share   float64
		over    bool
	}{
		{"nothing is known before the first look", 0, 500 * time.Second, 0, false},
		{"0.2 s in 5 s of 4 CPUs are 1 %", 5, 500*time.Second + 200*time.Millisecond, 0.01, false},
		{"a virtual machine ended", 10, time.Second, 0, false},
		{"0.4 s in 10 s are 1 %", 20, 1400 * time.Millisecond, 0.01, false},
		{"0.3 s in 5 s are 1.5 %", 25, 1700 * time.Millisecond, 0.015, true},
		{"a clock that stands still", 25, 9 * time.Second, 0, false},
	} {
		share, over := s.exceeded(at.Add(time.Duration(step.seconds)*time.Second), step.spent)
		if over != step.over || share < step.share-1e-9 || share > step.share+1e-9 {
			t.Errorf("%s: %v, %v; want %v, %v", step.name, share, over, step.share, step.over)
		}
	}
	unlimited := spending{budget: 1, cpus: 1}
	unlimited.exceeded(at, 0)
	if share, over := unlimited.exceeded(at.Add(time.Second), 2*time.Second); over || share != 2 {
		t.Errorf("without a limit: %v, %v", share, over)
	}
}

// Events above the budget end counting: no program stays attached, its status says why, and the backend does not attach again.
func TestCountingEndsAboveTheBudget(t *testing.T) {
	if privilege.Check("the test") != nil {
		t.Skip("not privileged: the programs cannot be loaded")
	}
	k, err := load()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.object.Close() })
	k.status = []bpf.Status{
		{Probe: "vm_exit", Mechanism: bpf.RawTracepoint, Program: "kvm_exit"},
		{Probe: "vm_vmgexit", Mechanism: bpf.NotAttached, Reason: "no such tracepoint"},
	}
	k.attached = true
	b := New(Options{Budget: 0.01, Log: slog.New(slog.DiscardHandler)})
	b.kernel, b.machines = k, newMachines(b.opts, k)
	now := time.Now()
	b.keepBudget(now)
	if !k.attached {
		t.Fatal("counting has ended without an event")
	}
	// Five seconds of the machine have the cost of so many exits per CPU: 4 % of its CPU time.
	k.rows[0].Exits[0] += uint64(b.spending.cpus) * uint64(200*time.Millisecond/costOfExit)
	b.keepBudget(now.Add(5 * time.Second))
	if k.attached || !k.stopped || k.status[0].Attached() || k.status[0].Reason == "" || k.status[1].Reason != "no such tracepoint" {
		t.Errorf("attached %v, stopped %v, %+v", k.attached, k.stopped, k.status)
	}
	b.tend(now.Add(time.Minute))
	if k.attached {
		t.Error("the backend attached again")
	}
}
