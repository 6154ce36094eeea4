// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/lib/text"
)

// ResourceLimits names the rule of this file.
const ResourceLimits = "resource-limits"

const (
	// memoryNear is the share of a memory limit above which the limit is near. Proposed.
	memoryNear = 0.90
	// memoryStalled is the least share of the time in which all tasks wait for memory, for the limit to slow the
	// workload. Proposed.
	memoryStalled = 0.01
	// killed is half an event, because Prometheus extrapolates an increase to the ends of the window.
	killed = 0.5
)

// Signals of this rule alone.
var (
	killsSignal = engine.Signal{
		Name: "kills", Query: ofContainer("sum", "increase(container_oom_events_total[$window])"), Unit: "processes",
		Help: "processes killed because the container was out of memory",
	}
	ownKillsSignal = engine.Signal{
		Name: "own_kills", Query: "sum by (workload, instance) (increase(teescope_oom_kills_total[$window]))", Unit: "processes",
		Help: "processes of the workload killed because memory ran out, also if its container ended",
	}
	memoryUseSignal = engine.Signal{
		Name: "memory", Query: ofContainer("max", "container_memory_working_set_bytes / (container_spec_memory_limit_bytes > 0)"), Unit: "ratio",
		Help: "share of the memory limit that is in use and cannot be dropped",
	}
	ownMemorySignal = engine.Signal{
		Name: "own_memory", Query: ofContainer("max", "container_memory_rss / (container_spec_memory_limit_bytes > 0)"), Unit: "ratio",
		Help: "share of the memory limit that is the programs' own memory, which the kernel cannot drop",
	}
	stalledSignal = engine.Signal{
		Name: "stalled", Query: ofContainer("max", "rate(container_pressure_memory_stalled_seconds_total[$window])"), Unit: "ratio",
		Help: "share of the time in which every task of the container waited for memory",
	}
	throttledSignal = engine.Signal{
		Name: "throttled", Unit: "ratio", Help: "share of the CPU periods in which the container was throttled",
		Query: engine.ThrottledQuery,
	}
	stoppedSignal = engine.Signal{
		Name: "stopped", Query: ofContainer("sum", "rate(container_cpu_cfs_throttled_seconds_total[$window])"+engine.Unthrottled), Unit: "cores",
		Help: "CPU time that the container lost to throttling",
	}
	usedSignal = engine.Signal{
		Name: "used", Query: ofContainer("sum", "rate(container_cpu_usage_seconds_total[$window])"), Unit: "cores",
		Help: "CPUs that the container used",
	}
)

// memoryShare can be replaced in the configuration.
var memoryShare = engine.Threshold{Name: "memory", Default: memoryNear, Unit: "ratio", Help: "share of a memory limit in use"}

func resourceLimits() engine.Rule {
	return engine.Rule{
		Name: ResourceLimits, Title: "the container's memory or CPU limit is too low",
		Thresholds: []engine.Threshold{memoryShare},
		Signals: []engine.Signal{
			killsSignal, ownKillsSignal, memoryUseSignal, ownMemorySignal, stalledSignal, throttledSignal, stoppedSignal, usedSignal,
		},
		Judge: judgeResourceLimits,
		NotWhen: []string{
			"the memory near the limit is page cache in use: the kernel reclaims it before it kills a process",
			"the container is throttled in short bursts and would otherwise wait for its clients",
		},
		Sources: []string{
			"kernel: Documentation/admin-guide/cgroup-v2.rst (memory.max, cpu.max)",
			"kubernetes-mixin, alert CPUThrottlingHigh: 25 % of the periods",
		},
	}
}

// judgeResourceLimits judges workloads in and outside a TEE alike, because the container has the limit.
func judgeResourceLimits(w engine.Workload) *engine.Verdict {
	kills, _ := w.Value(killsSignal)
	own, _ := w.Value(ownKillsSignal)
	if most := max(kills, own); most >= killed {
		lacking, counted := "the container was out of memory", []string{killsSignal.Name, ownKillsSignal.Name}
		if kills < killed { // its container has ended, or it has none and the machine was out of memory
			lacking, counted = "memory ran out", []string{ownKillsSignal.Name}
		}
		return &engine.Verdict{
			Severity: analysis.High, Confidence: analysis.Measured, Event: true,
			Cause:    fmt.Sprintf("the kernel killed %.0f processes because %s", max(1, most), lacking),
			Evidence: append(counted, memoryUseSignal.Name, stalledSignal.Name),
			Advice: []string{
				"raise the memory limit: evicted enclave pages count against it too",
				"or reduce its memory: a smaller cache, fewer connections, fewer processes",
			},
		}
	}
	if memory, measured := w.Value(memoryUseSignal); measured && memory >= w.LeastFor(memoryShare) {
		v := &engine.Verdict{
			Severity: analysis.Info, Confidence: analysis.Possible,
			Cause:    fmt.Sprintf("the container uses %s of its memory limit", text.Percent(memory)),
			Evidence: []string{memoryUseSignal.Name, ownMemorySignal.Name, stalledSignal.Name, killsSignal.Name},
			Advice: []string{
				"raise the memory limit before the kernel kills a process",
				"check whether its memory still grows: container_memory_working_set_bytes over the last hours",
			},
		}
		switch own, told := w.Value(ownMemorySignal); {
		case told && own >= w.LeastWhile(analysis.Medium, w.Threshold(memoryShare)):
			v.Severity = analysis.Medium // about to fail, if it still grows
			v.Cause += fmt.Sprintf(", and %s is memory of its programs, which the kernel cannot drop", text.Percent(own))
		case told:
			v.Cause += fmt.Sprintf("; %s is memory of its programs, and the kernel can drop the page cache in the rest", text.Percent(own))
		}
		if stalled, known := w.Value(stalledSignal); known && stalled >= w.LeastWhile(analysis.High, memoryStalled) {
			v.Severity, v.Confidence = analysis.High, analysis.Likely
			v.Cause += fmt.Sprintf(", and all its tasks wait for memory for %s of the time", text.Percent(stalled))
			v.Gain = estimate.Amdahl("the memory of its container", 0, stalled, "at best no task waits for memory")
		}
		return v
	}
	v, ok := figures(w, throttledSignal, stoppedSignal, usedSignal)
	if !ok || v[throttledSignal] < w.Least(engine.ThrottledPeriods) || v[usedSignal] <= 0 {
		return nil
	}
	return &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("the container is throttled in %s of its CPU periods: it used %s CPUs and lost %s",
			text.Percent(v[throttledSignal]), figure(v[usedSignal]), figure(v[stoppedSignal])),
		Evidence: []string{throttledSignal.Name, stoppedSignal.Name, usedSignal.Name},
		Advice: []string{
			"raise the CPU limit, or remove it and keep the request (shares)",
			"start as many threads as the limit has CPUs: more threads reach the limit sooner in each period",
		},
		Gain: estimate.Amdahl("its CPU quota", 0, v[stoppedSignal]/(v[usedSignal]+v[stoppedSignal]),
			"at best the container runs whenever it was throttled, and that time is as productive as its other CPU time"),
	}
}
