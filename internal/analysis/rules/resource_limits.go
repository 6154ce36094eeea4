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

func resourceLimits() engine.Rule {
	return engine.Rule{
		Name: ResourceLimits, Title: "the container's memory or CPU limit",
		Signals: []engine.Signal{
			{
				Name: "kills", Query: ofContainer("sum", "increase(container_oom_events_total[$window])"), Unit: "processes",
				Help: "processes killed because the container was out of memory",
			},
			{
				Name: "memory", Query: ofContainer("max", "container_memory_working_set_bytes / (container_spec_memory_limit_bytes > 0)"), Unit: "ratio",
				Help: "memory that cannot be dropped, against the limit",
			},
			{
				Name: "stalled", Query: ofContainer("max", "rate(container_pressure_memory_stalled_seconds_total[$window])"), Unit: "ratio",
				Help: "share of the time in which every task of the container waited for memory",
			},
			{
				Name: "throttled", Unit: "ratio", Help: "share of the CPU periods in which the container was stopped",
				Query: ofContainer("max", "rate(container_cpu_cfs_throttled_periods_total[$window]) / (rate(container_cpu_cfs_periods_total[$window]) > 0)"),
			},
			{
				Name: "stopped", Query: ofContainer("sum", "rate(container_cpu_cfs_throttled_seconds_total[$window])"), Unit: "cores",
				Help: "CPUs that the container was kept from",
			},
			{
				Name: "used", Query: ofContainer("sum", "rate(container_cpu_usage_seconds_total[$window])"), Unit: "cores",
				Help: "CPUs that the container used",
			},
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
	if kills, measured := w.Value("kills"); measured && kills >= killed {
		return &engine.Verdict{
			Severity: analysis.High, Confidence: analysis.Measured,
			Cause:    fmt.Sprintf("the kernel killed %.0f processes because the container was out of memory", max(1, kills)),
			Evidence: []string{"kills", "memory", "stalled"},
			Advice: []string{
				"raise the memory limit: enclave pages that are paged out count against it too",
				"or let it hold less: a smaller cache, fewer connections, fewer processes",
			},
		}
	}
	if memory, measured := w.Value("memory"); measured && memory >= memoryNear {
		v := &engine.Verdict{
			Severity: analysis.Medium, Confidence: analysis.Possible,
			Cause:    fmt.Sprintf("the container holds %s of the memory that it may have", percent(memory)),
			Evidence: []string{"memory", "stalled", "kills"},
			Advice: []string{
				"raise the memory limit before the kernel kills it",
				"find out whether it still grows: container_memory_working_set_bytes over the last hours",
			},
		}
		if stalled, told := w.Value("stalled"); told && stalled >= memoryStalled {
			v.Severity, v.Confidence = analysis.High, analysis.Likely
			v.Cause += fmt.Sprintf(", and stands still for %s of the time to find some", percent(stalled))
			v.Gain = analysis.Amdahl(0, stalled, "at best nothing waits for memory any more")
		}
		return v
	}
	v, ok := figures(w, "throttled", "stopped", "used")
	if !ok || v["throttled"] < throttledPeriods || v["used"] <= 0 {
		return nil
	}
	return &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("the container is stopped in %s of its CPU periods: it used %s CPUs and was kept from %s",
			percent(v["throttled"]), figure(v["used"]), figure(v["stopped"])),
		Evidence: []string{"throttled", "stopped", "used"},
		Advice: []string{
			"raise the CPU limit, or take it away and leave the request (shares)",
			"start as many threads as the limit has CPUs: more use it up sooner in each period",
		},
		Gain: analysis.Amdahl(0, v["stopped"]/(v["used"]+v["stopped"]),
			"at best the container runs whenever it was stopped, and that brings as much as its other CPU time"),
	}
}
