// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// NotTheTEE names the rule of this file.
const NotTheTEE = "not-the-tee"

const (
	// stalledMemory is the share of the time in which something waits for memory. Proposed.
	stalledMemory = 0.10
	// majorFaults is the least rate of the workload's own faults that a device had to serve, for the machine's lack of
	// memory to be its trouble. Proposed.
	majorFaults = 10
	// waitForOthers is the least time waited for a CPU, against that used and waited. Proposed.
	waitForOthers = 0.30
	// stolen is the least share of the CPUs that the hypervisor gives to others. Proposed.
	stolen = 0.10
	// epcPaging is the rate of enclave pages loaded back from which on the TEE pages as well. Proposed (rule 9 of the
	// advisor).
	epcPaging = 1000
)

// Signals of this rule alone.
var (
	pressureSignal = engine.Signal{
		Name: "pressure", Query: "max by (instance) (rate(node_pressure_memory_waiting_seconds_total[$window]))", Unit: "ratio",
		Help: "share of the time in which something on the machine waited for memory (PSI)",
	}
	ownPressureSignal = engine.Signal{
		Name: "own_pressure", Query: ofContainer("max", "rate(container_pressure_memory_waiting_seconds_total[$window])"), Unit: "ratio",
		Help: "the same of the workload's container",
	}
	swapSignal = engine.Signal{
		Name: "swap", Unit: "1/s", Help: "pages swapped in and out on the machine",
		Query: "sum by (instance) (rate(node_vmstat_pswpin[$window]) + rate(node_vmstat_pswpout[$window]))",
	}
	stealSignal = engine.Signal{
		Name: "steal", Query: machinePerSecond(`node_cpu_seconds_total{mode="steal"}`), Unit: "cores", Help: "CPUs that the hypervisor gave to others",
	}
	loadsSignal = engine.Signal{
		Name: "loads", Query: perSecond("sgx_workload_pages_loaded_back_total"), Unit: "1/s", Help: "enclave pages loaded back",
	}
)

func notTheTEE() engine.Rule {
	return engine.Rule{
		Name: NotTheTEE, Title: "not the TEE: the host lacks memory or CPU time",
		Signals: []engine.Signal{
			teeSignal, cpuSignal, waitSignal, threadsSignal, coresSignal, idleSignal, pressureSignal,
			ownPressureSignal, majorFaultsSignal, swapSignal, stealSignal, loadsSignal,
		},
		Judge: judgeNotTheTEE,
		NotWhen: []string{
			"it is the enclave memory itself that fills the machine: pages that are paged out lie in ordinary memory",
			"the workload waits for its clients anyway",
		},
		Sources: []string{
			"kernel: Documentation/accounting/psi.rst",
			"TEEMon, Middleware 2020, 6.5: faults and switches of the whole host beside those of the process",
		},
	}
}

// judgeNotTheTEE speaks of workloads in a TEE alone: elsewhere nobody would blame one.
func judgeNotTheTEE(w engine.Workload) *engine.Verdict {
	if !placeOf(w).protected() {
		return nil
	}
	for _, judge := range []func(engine.Workload) *engine.Verdict{hostReclaim, stolenTime, busyNeighbours} {
		if v := judge(w); v != nil {
			return v
		}
	}
	return nil
}

// hostReclaim wants the machine or the container to lack memory, and the workload to feel it.
func hostReclaim(w engine.Workload) *engine.Verdict {
	machine, told := w.Value(pressureSignal)
	own, toldOwn := w.Value(ownPressureSignal)
	major, _ := w.Value(majorFaultsSignal)
	pressure, evidence := machine, []string{pressureSignal.Name, majorFaultsSignal.Name, ownPressureSignal.Name, swapSignal.Name, loadsSignal.Name}
	switch {
	case toldOwn && own >= stalledMemory:
		pressure, evidence[0], evidence[2] = own, ownPressureSignal.Name, pressureSignal.Name
	case told && machine >= stalledMemory && major >= majorFaults:
	default:
		return nil
	}
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("not the TEE: for %s of the time something waits for the host's memory, and the workload has %s faults/s that a device must serve",
			percent(pressure), figure(major)),
		Evidence: evidence,
		Advice: []string{
			"give the host or the container more memory, or move neighbours away: changing the enclave will not help",
			"look at who holds it: teescope_resident_memory_bytes by workload, and the page cache",
		},
		Gain: analysis.Amdahl(0, pressure, "at best nothing waits for memory any more",
			"the workload stands still whenever something on the machine does"),
		Supersedes: []string{PageFaultStorm, ContextSwitchStorm},
	}
	if loads, _ := w.Value(loadsSignal); loads >= epcPaging {
		v.Confidence = analysis.Possible
		v.Cause += fmt.Sprintf("; it also loads %s enclave pages/s back, from that memory", figure(loads))
	}
	return v
}

// stolenTime wants a hypervisor that gives the CPUs to others.
func stolenTime(w engine.Workload) *engine.Verdict {
	v, ok := figures(w, cpuSignal, stealSignal, coresSignal)
	if !ok || v[cpuSignal] < leastBusy || v[stealSignal] < stolen*v[coresSignal] {
		return nil
	}
	return &engine.Verdict{
		Confidence: analysis.Likely,
		Cause:      fmt.Sprintf("not the TEE: the hypervisor gives %s of this machine's CPUs to others", percent(v[stealSignal]/v[coresSignal])),
		Evidence:   []string{stealSignal.Name, coresSignal.Name, cpuSignal.Name, waitSignal.Name},
		Advice:     []string{"move the virtual machine to a host that is less full, or pay for CPUs of its own: changing the enclave will not help"},
		Gain:       analysis.Amdahl(0, v[stealSignal]/v[coresSignal], "at best all of the CPUs run when they are ready, and the workload had its share of what was taken"),
	}
}

// busyNeighbours wants threads that find a CPU each, if others left them.
func busyNeighbours(w engine.Workload) *engine.Verdict {
	v, ok := figures(w, cpuSignal, waitSignal, threadsSignal, coresSignal, idleSignal)
	if !ok || v[cpuSignal] < leastBusy || v[idleSignal] > crowdedIdle*v[coresSignal] {
		return nil
	}
	if v[waitSignal] < waitForOthers*(v[cpuSignal]+v[waitSignal]) || v[cpuSignal] >= ownCrowd*(v[coresSignal]-v[idleSignal]) {
		return nil
	}
	return &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("not the TEE: the workload's threads wait for a CPU %s of the time that they could run, while others use %s of %s CPUs",
			percent(v[waitSignal]/(v[cpuSignal]+v[waitSignal])), figure(v[coresSignal]-v[idleSignal]-v[cpuSignal]), figure(v[coresSignal])),
		Evidence: []string{waitSignal.Name, cpuSignal.Name, coresSignal.Name, idleSignal.Name, threadsSignal.Name},
		Advice: []string{
			"move the neighbours away, or give this workload CPUs of its own (cpuset, a larger share): changing the enclave will not help",
			"see who uses them: topk(5, sum by (workload) (rate(teescope_cpu_seconds_total[1m])))",
		},
		Gain: analysis.Amdahl(0, v[waitSignal]/(v[cpuSignal]+v[waitSignal]),
			"at best a thread that is ready runs at once, and CPU time limits the workload"),
		Supersedes: []string{ContextSwitchStorm, ThreadsOverCapacity, AEXStorm},
	}
}
