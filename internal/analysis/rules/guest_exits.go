// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/text"
)

// GuestExits names the rule of this file.
const GuestExits = "guest-exits"

// guestExceptionsSignal is the signal of this rule alone.
var guestExceptionsSignal = engine.Signal{
	Name: "exceptions", Query: perSecond(`teescope_workload_guest_exceptions_total{reason!~"hlt|other"}`, "reason"), Unit: "1/s",
	Help: "instructions of the workload that caused a #VE or #VC, by reason, without halts and without those that have no remedy",
}

// guestCost can be replaced in the configuration.
var guestCost = engine.Threshold{Name: "share", Default: worthwhile, Unit: "ratio", Help: "minimum share of the CPU time that exceptions in place of instructions take, at the middle of their cost"}

func guestExits() engine.Rule {
	return engine.Rule{
		Name: GuestExits, Title: "instructions need the host of this confidential machine too often",
		Code:       codelink.CPU,
		Threads:    analysis.ThreadCPU,
		Thresholds: []engine.Threshold{guestCost},
		Signals:    []engine.Signal{cpuSignal, guestExceptionsSignal},
		Judge:      judgeGuestExits,
		NotWhen: []string{
			"in mode kernel, the exceptions may belong to an interrupt and not to the workload that it interrupted",
		},
		Sources: []string{cost.Exception.Source, cost.HostException.Source, "Linux, arch/x86/coco: exceptions are counted at their handlers"},
	}
}

func judgeGuestExits(w engine.Workload) *engine.Verdict {
	cpu, measured := w.Value(cpuSignal)
	by := w.By(guestExceptionsSignal, "reason")
	if !measured || len(by) == 0 || cpu < w.Least(leastBusy) {
		return nil
	}
	all, top := 0.0, ""
	for reason, n := range by {
		all += n
		if exitRemedies[reason] != "" && n > 0 && (top == "" || n > by[top] || n == by[top] && reason < top) {
			top = reason
		}
	}
	host := sumOf(by, hostReasons...)
	taken, enough := exceptionsTake(w, all-host, host, cpu, guestCost)
	if top == "" || !enough {
		return nil
	}
	v := &engine.Verdict{
		Confidence: taken.confidence,
		Cause: fmt.Sprintf("%s instructions/s cause an exception and mostly an exit to the host, %s of them %s: that takes %s of the CPU time",
			figure(all), text.Percent(by[top]/all), top, between(taken.low/cpu, taken.high/cpu)),
		Evidence: []string{guestExceptionsSignal.With("reason", top), guestExceptionsSignal.Name, cpuSignal.Name},
		Advice:   []string{exitRemedies[top]},
	}
	v.Saves(w, taken.low, taken.high, cost.Exception.Assumption(), cost.HostException.Assumption(), w.Clock.Assumption())
	return v
}

// exceptionTime is the CPU time that exceptions take, in cores.
type exceptionTime struct {
	low, high  float64
	confidence analysis.Confidence
}

// hostReasons are the reasons of exceptions that a guest handles only by asking the host: devices, timers and interrupts are the
// host's. The TDX module and SEV-SNP's table answer some CPUIDs, and guests read some MSRs themselves.
var hostReasons = []string{"io", "mmio", "msr_write", "hypercall"}

// exceptionsTake returns the time of exceptions a second, of which some always ask the host, and whether it is a sufficient share
// of the CPU time at the middle of their cost.
func exceptionsTake(w engine.Workload, perhaps, host, cpu float64, share engine.Threshold) (t exceptionTime, enough bool) {
	low, high := cost.Exception.CPU(perhaps, w.Clock)
	hostLow, hostHigh := cost.HostException.CPU(host, w.Clock)
	low, high = low+hostLow, high+hostHigh
	limit := w.LeastFor(share) * cpu
	t.confidence = analysis.Possible // at their least cost they take less
	if low >= limit {
		t.confidence = analysis.Likely
	}
	t.low, t.high = capped(low, high, cpu)
	return t, middle(low, high) >= limit
}
