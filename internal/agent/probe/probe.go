// SPDX-License-Identifier: Apache-2.0

// Package probe has the metrics about the agent's eBPF programs: which probes are attached and why others are not, the
// cost of each program, and the memory of the maps.
//
// It does not attach anything or depend on the purpose of a probe.
package probe

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/teescope/teescope/internal/agent/bpf"
	"github.com/teescope/teescope/internal/lib/metric"
)

// Families are the families about eBPF programs. Each owner of an object emits them, with unique names of probes. The
// collector system describes them for all.
type Families struct {
	prefix                            string // of program and map names, which several objects may share
	attached, instructions, mapMemory *metric.Desc
	sampledRuns, sampledSeconds       *metric.Desc
	missedRuns                        *metric.Desc
}

// NewFamilies returns the descriptions. The prefix distinguishes the programs and maps of one object from those of
// others.
func NewFamilies(prefix string) *Families {
	return &Families{
		prefix: prefix,
		attached: family("teescope_probe_attached", metric.Gauge, "",
			"1 when the probe sees events. reason says why it does not, or what this mechanism counts differently.", "probe", "mechanism", "reason"),
		instructions: family("teescope_bpf_program_instructions", metric.Gauge, "instructions",
			"Number of eBPF instructions of the program after dead code was removed.", "program"),
		sampledRuns: family("teescope_bpf_program_sampled_runs_total", metric.Counter, "runs",
			"Runs of the program while the kernel's eBPF statistics were enabled.", "program"),
		sampledSeconds: family("teescope_bpf_program_sampled_run_seconds_total", metric.Counter, "seconds",
			"Time in the program while the kernel's eBPF statistics were enabled. Divided by the runs, it is the time of one run.", "program"),
		missedRuns: family("teescope_bpf_program_missed_runs_total", metric.Counter, "runs",
			"Events at which the kernel did not run the program, because the program was already running on the same CPU. An interrupt "+
				"or another thread had preempted it. These events are not counted. Counts are exact while this does not increase.", "program"),
		mapMemory: family("teescope_bpf_map_memory_bytes", metric.Gauge, "bytes",
			"Kernel memory of an eBPF map.", "map"),
	}
}

func family(name string, kind metric.Kind, unit, help string, labels ...string) *metric.Desc {
	return metric.New(metric.Desc{
		Name: name, Kind: kind, Unit: unit, Help: help, Labels: labels,
		Source: metric.Agent, Origin: "teescope",
	})
}

// All lists the descriptions in the order of the documentation.
func (f *Families) All() []*metric.Desc {
	return []*metric.Desc{f.attached, f.instructions, f.sampledRuns, f.sampledSeconds, f.missedRuns, f.mapMemory}
}

// Emit emits the samples of one object and its probes. It returns the number of missed runs of all programs.
func (f *Families) Emit(o *bpf.Object, probes []bpf.Status, emit func(prometheus.Metric)) (missed uint64) {
	for _, s := range probes {
		attached := 0.0
		if s.Attached() {
			attached = 1
		}
		emit(f.attached.Value(attached, s.Probe, string(s.Mechanism), s.Reason))
	}
	for _, cost := range o.Costs() {
		program := f.prefix + cost.Program
		emit(f.instructions.Value(float64(cost.Instructions), program))
		emit(f.missedRuns.Value(float64(cost.Missed), program))
		missed += cost.Missed
		if cost.Runs > 0 {
			emit(f.sampledRuns.Value(float64(cost.Runs), program))
			emit(f.sampledSeconds.Value(cost.RunTime.Seconds(), program))
		}
	}
	for name, bytes := range o.MapMemory() {
		emit(f.mapMemory.Value(float64(bytes), f.prefix+name))
	}
	return missed
}

// Trial is the result of trying to attach one probe on this machine.
type Trial struct {
	bpf.Status
	Required bool
	Ways     []bpf.Trial // all ways, in the order of preference
}
