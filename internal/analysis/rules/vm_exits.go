// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/promql"
	"github.com/teescope/teescope/internal/lib/text"
)

// VMExits names the rule of this file.
const VMExits = "vm-exits"

const (
	// outsideShare is the least share of the time of a virtual machine's CPUs that exits for one reason take. Proposed.
	outsideShare = 0.10
	// mostlyVMM is the share of the exits for a reason from which the VMM is named as their handler. Proposed.
	mostlyVMM = 0.5
)

// ofVM adds the label workload to the rate of a counter of virtual machines.
func ofVM(name string) string {
	return fmt.Sprintf("sum by (workload, instance, reason) (rate(%s[$window]) * on (instance, vm) group_left (workload) %s)", name,
		promql.Newest("teescope_vm_info", "instance", "vm"))
}

// Signals of this rule alone.
var (
	vmExitsSignal = engine.Signal{
		Name: "exits", Query: ofVM("teescope_vm_exits_total"), Unit: "1/s", Help: "exits of the virtual machine to its host",
	}
	vmOutsideSignal = engine.Signal{
		Name: "outside", Query: ofVM("teescope_vm_exit_seconds_total"), Unit: "threads",
		Help: "virtual CPUs that are outside of the guest, on average",
	}
	vmHaltsSignal = engine.Signal{
		Name: "halts", Unit: "1/s", Help: "exits of confidential virtual machines because of hlt (TDX, SEV-ES, SEV-SNP)",
		Query: `sum by (workload, instance) (rate(teescope_vm_exits_total{reason="hlt"}[$window]) * on (instance, vm) group_left (workload) ` +
			promql.Newest(`teescope_vm_info{tee=~"tdx|sev-es|sev-snp"}`, "instance", "vm") + `)`,
	}
	vmToVMMSignal = engine.Signal{
		Name: "vmm", Query: ofVM("teescope_vm_userspace_exits_total"), Unit: "1/s", Help: "exits that the VMM handled",
	}
)

// vmCost can be replaced in the configuration.
var vmCost = engine.Threshold{Name: "share", Default: outsideShare, Unit: "ratio", Help: "minimum share of the time of virtual CPUs that exits for one reason take"}

// pollIdle says how fewer halts also cause fewer interrupts: the kernel wakes a CPU that polls by a flag in memory.
const pollIdle = "let idle virtual CPUs poll before they halt (cpuidle_haltpoll.force=1 in the guest): waking one that polls needs no interrupt"

// exitRemedies say what to do about exits of a virtual machine, by reason. The time of hlt is mostly that of a guest with
// nothing to do, so it is judged by the published cost of an exit.
var exitRemedies = map[string]string{
	"cpuid":         "find the program in the guest that executes CPUID, and let it cache the results: each CPUID leaves the guest. A program that serialises RDTSC by CPUID executes one for each reading of the time",
	"io":            "use virtio devices in place of emulated ones, and print less to the serial console: each access to a port leaves the guest",
	"mmio":          "use virtio with vhost, so that notifications do not reach the VMM, and let the guest poll a busy queue",
	"msr_read":      "read performance counters less often, and use a clock that needs no MSR (kvm-clock, TSC)",
	"msr_write":     "cause fewer timers and interrupts between virtual CPUs: fewer virtual CPUs, pinned threads, fewer wake-ups; " + pollIdle + "; use AVIC or posted interrupts if the host has them",
	"hypercall":     "cause fewer interrupts between virtual CPUs, which the guest sends by hypercalls: fewer virtual CPUs, pinned threads, fewer wake-ups; " + pollIdle,
	"private_fault": "let the guest accept its memory once and keep it; use fewer virtual CPUs, because each fault of a trust domain takes longer with them; back private memory with huge pages if the host can (TDX hosts up to Linux 7.0 cannot)",
	"shared_fault":  "back the guest's memory with huge pages, and populate it before the guest starts",
	"page_state":    "let the guest keep its DMA buffers, or give it a larger pool of bounce buffers: its drivers convert memory between private and shared again and again",
	"attestation":   "reuse reports and session keys: the requests of a virtual machine are served one at a time",
	"interrupt":     "keep the host's interrupts and other threads away from the CPUs of the virtual machine (affinity of interrupts, pinned virtual CPUs)",
}

func vmExits() engine.Rule {
	return engine.Rule{
		Name: VMExits, Title: "a virtual machine is often outside of its guest",
		Thresholds: []engine.Threshold{vmCost},
		Signals:    []engine.Signal{cpuSignal, vmExitsSignal, vmOutsideSignal, vmToVMMSignal, vmHaltsSignal},
		Judge:      judgeVMExits,
		NotWhen: []string{
			"the guest waits for a device or for memory on purpose: the time outside includes it",
			"the host has too few CPUs: a virtual CPU that waits for one is outside",
			"the CPUs of the guest halt because they have no work, and another CPU of it is busy with other work",
		},
		Sources: []string{
			"Linux, arch/x86/kvm/trace.h: kvm_exit and kvm_entry; the time between them is measured on this machine",
			"AMD64 Architecture Programmer's Manual, volume 2, 15.6 and 15.9; Intel SDM, volume 3, appendix C: reasons of exits",
			"halts: " + cost.HostException.Source + "; Dstack-TEE/dstack#1219 and #1220: each halt and each interrupt between CPUs is an exit of a trust domain",
		},
	}
}

// judgeVMExits judges exits by their measured time, and halts by their published cost where no other reason takes enough.
func judgeVMExits(w engine.Workload) *engine.Verdict {
	cores, busy := w.Value(cpuSignal)
	if !busy {
		return nil
	}
	if v := judgeTimedExits(w, cores); v != nil {
		return v
	}
	return judgeHalts(w, cores)
}

func judgeHalts(w engine.Workload, cores float64) *engine.Verdict {
	halts, counted := w.Value(vmHaltsSignal)
	if !counted || cores < w.Least(leastBusy) {
		return nil
	}
	taken, enough := exceptionsTake(w, 0, halts, cores, vmCost)
	if !enough {
		return nil
	}
	v := &engine.Verdict{
		Confidence: taken.confidence,
		Cause: fmt.Sprintf("the CPUs of the confidential virtual machine halt %s times/s, and each halt is an exit to the host: that takes %s of the CPU time",
			figure(halts), between(taken.low/cores, taken.high/cores)),
		Evidence: []string{vmHaltsSignal.Name, cpuSignal.Name},
		Advice:   []string{pollIdle, "use fewer virtual CPUs, pin threads, and have a lower rate of timer ticks (nohz, HZ): each tick of an idle CPU is a halt"},
	}
	v.Saves(w, taken.low, taken.high, cost.HostException.Assumption(), w.Clock.Assumption())
	return v
}

func judgeTimedExits(w engine.Workload, cores float64) *engine.Verdict {
	exits, outside := w.By(vmExitsSignal, "reason"), w.By(vmOutsideSignal, "reason")
	if len(exits) == 0 || len(outside) == 0 {
		return nil
	}
	away, top := 0.0, ""
	for reason, threads := range outside {
		if reason == "hlt" {
			continue
		}
		away += threads
		if exitRemedies[reason] != "" && (top == "" || threads > outside[top] || threads == outside[top] && reason < top) {
			top = reason
		}
	}
	if top == "" || exits[top] <= 0 || cores+away < w.Least(leastBusy) {
		return nil
	}
	// The time outside is CPU time of the host's kernel and of the VMM, which are in cores, or waiting, which is not.
	low, high := outside[top]/(cores+away), outside[top]/max(cores, away)
	if low < w.LeastFor(vmCost) {
		return nil
	}
	v := &engine.Verdict{
		Confidence: analysis.Measured,
		Cause: fmt.Sprintf("the virtual machine leaves its guest %s times/s because of %s, for %s us each time: its CPUs spend %s of their time on that",
			figure(exits[top]), top, figure(1e6*outside[top]/exits[top]), between(low, high)),
		Evidence: []string{vmOutsideSignal.With("reason", top), vmExitsSignal.With("reason", top), cpuSignal.Name},
		Advice:   []string{exitRemedies[top]},
	}
	if handled := w.By(vmToVMMSignal, "reason")[top]; handled >= mostlyVMM*exits[top] {
		v.Evidence = append(v.Evidence, vmToVMMSignal.With("reason", top))
		v.Advice = append(v.Advice, fmt.Sprintf("the VMM handles %s of them: let the kernel do it (vhost, an interrupt controller in the kernel), which takes a fraction of the time",
			text.Percent(min(1, handled/exits[top]))))
	}
	v.Waits(w, outside[top], low, high,
		"without the exits, the guest's work goes on in their time",
		"the switches between guest and host are not in the measured time, so the cost is larger")
	return v
}
