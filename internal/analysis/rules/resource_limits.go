// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// ResourceLimits names the rule of this file.
const ResourceLimits = "resource-limits"

const (
	// memoryNear is the share of a memory limit from which on the end is near. Proposed.
	memoryNear = 0.90
	// memoryStalled is the share of the time in which everything waits for memory that shows that the limit hurts.
	// Proposed.
	memoryStalled = 0.01
	// throttledPeriods is the share of CPU periods cut short. Documented (kubernetes-mixin, CPUThrottlingHigh).
	throttledPeriods = 0.25
	// killed is half an event: an increase over a window is extrapolated to its ends.
	killed = 0.5
)

// Signals of this rule alone.
var (
	killsSignal = engine.Signal{
		Name: "kills", Query: ofContainer("sum", "increase(container_oom_events_total[$window])"), Unit: "processes",
		Help: "processes killed because the container was out of memory",
	}
	memoryUseSignal = engine.Signal{
		Name: "memory", Query: ofContainer("max", "container_memory_working_set_bytes / (container_spec_memory_limit_bytes > 0)"), Unit: "ratio",
		Help: "memory that cannot be dropped, against the limit",
	}
	stalledSignal = engine.Signal{
		Name: "stalled", Query: ofContainer("max", "rate(container_pressure_memory_stalled_seconds_total[$window])"), Unit: "ratio",
		Help: "share of the time in which every task of the container waited for memory",
	}
	throttledSignal = engine.Signal{
		Name: "throttled", Unit: "ratio", Help: "share of the CPU periods in which the container was stopped",
		Query: ofContainer("max", "rate(container_cpu_cfs_throttled_periods_total[$window]) / (rate(container_cpu_cfs_periods_total[$window]) > 0)"),
	}
	stoppedSignal = engine.Signal{
		Name: "stopped", Query: ofContainer("sum", "rate(container_cpu_cfs_throttled_seconds_total[$window])"), Unit: "cores",
		Help: "CPUs that the container was kept from",
	}
	usedSignal = engine.Signal{
		Name: "used", Query: ofContainer("sum", "rate(container_cpu_usage_seconds_total[$window])"), Unit: "cores",
		Help: "CPUs that the container used",
	}
)

func resourceLimits() engine.Rule {
	return engine.Rule{
		Name: ResourceLimits, Title: "the container's memory or CPU limit",
		Signals: []engine.Signal{
			killsSignal, memoryUseSignal, stalledSignal, throttledSignal, stoppedSignal, usedSignal,
		},
		Judge: judgeResourceLimits,
		NotWhen: []string{
			"memory near the limit is page cache in use: it is given up before anything is killed",
			"the container is throttled in short bursts and would wait for its clients otherwise",
		},
		Sources: []string{
			"kernel: Documentation/admin-guide/cgroup-v2.rst (memory.max, cpu.max)",
			"kubernetes-mixin, alert CPUThrottlingHigh: 25 % of the periods",
		},
	}
}

// judgeResourceLimits is for workloads in and outside of a TEE alike: it is the container that has the limit, not the enclave.
func judgeResourceLimits(w engine.Workload) *engine.Verdict {
	if kills, measured := w.Value(killsSignal); measured && kills >= killed {
		return &engine.Verdict{
			Severity: analysis.High, Confidence: analysis.Measured,
			Cause:    fmt.Sprintf("the kernel killed %.0f processes because the container was out of memory", max(1, kills)),
			Evidence: []string{killsSignal.Name, memoryUseSignal.Name, stalledSignal.Name},
			Advice: []string{
				"raise the memory limit: enclave pages that are paged out count against it too",
				"or let it hold less: a smaller cache, fewer connections, fewer processes",
			},
		}
	}
	if memory, measured := w.Value(memoryUseSignal); measured && memory >= memoryNear {
		v := &engine.Verdict{
			Severity: analysis.Medium, Confidence: analysis.Possible,
			Cause:    fmt.Sprintf("the container holds %s of the memory that it may have", percent(memory)),
			Evidence: []string{memoryUseSignal.Name, stalledSignal.Name, killsSignal.Name},
			Advice: []string{
				"raise the memory limit before the kernel kills it",
				"find out whether it still grows: container_memory_working_set_bytes over the last hours",
			},
		}
		if stalled, told := w.Value(stalledSignal); told && stalled >= memoryStalled {
			v.Severity, v.Confidence = analysis.High, analysis.Likely
			v.Cause += fmt.Sprintf(", and stands still for %s of the time to find some", percent(stalled))
			v.Gain = analysis.Amdahl(0, stalled, "at best nothing waits for memory any more")
		}
		return v
	}
	v, ok := figures(w, throttledSignal, stoppedSignal, usedSignal)
	if !ok || v[throttledSignal] < throttledPeriods || v[usedSignal] <= 0 {
		return nil
	}
	return &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("the container is stopped in %s of its CPU periods: it used %s CPUs and was kept from %s",
			percent(v[throttledSignal]), figure(v[usedSignal]), figure(v[stoppedSignal])),
		Evidence: []string{throttledSignal.Name, stoppedSignal.Name, usedSignal.Name},
		Advice: []string{
			"raise the CPU limit, or take it away and leave the request (shares)",
			"start as many threads as the limit has CPUs: more use it up sooner in each period",
		},
		Gain: analysis.Amdahl(0, v[stoppedSignal]/(v[usedSignal]+v[stoppedSignal]),
			"at best the container runs whenever it was stopped, and that brings as much as its other CPU time"),
	}
}
