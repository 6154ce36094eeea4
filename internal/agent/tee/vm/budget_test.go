// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"log/slog"
	"testing"
	"time"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/privilege/privilegetest"
)

// Events above the budget end counting: no program stays attached, its status says why, and the backend does not attach again.
func TestCountingEndsAboveTheBudget(t *testing.T) {
	privilegetest.Alone(t)
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
	k.rows[0].Exits[0] += uint64(b.spending.CPUs) * uint64(200*time.Millisecond/costOfExit)
	b.keepBudget(now.Add(5 * time.Second))
	if k.attached || !k.stopped || k.status[0].Attached() || k.status[0].Reason == "" || k.status[1].Reason != "no such tracepoint" {
		t.Errorf("attached %v, stopped %v, %+v", k.attached, k.stopped, k.status)
	}
	b.tend(now.Add(time.Minute))
	if k.attached {
		t.Error("the backend attached again")
	}
}
