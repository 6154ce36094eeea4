// SPDX-License-Identifier: Apache-2.0

package boundary

import (
	"slices"

	"github.com/teescope/teescope/internal/lib/metric"
)

// workloadLabels are as on every family about a workload.
var workloadLabels = []string{"workload", "container", "pod", "namespace"}

// families are all that the backend can emit.
type families struct {
	transitions, ecalls, ocalls, signals        *metric.Desc
	ecallTime, ocallTime, estimated             *metric.Desc
	probed, share, deviation, hits, timed, lost *metric.Desc
	cost                                        *metric.Desc
}

const fromRuntimes = "uprobes on functions of the untrusted runtime; Gramine's thread control blocks"

func perWorkload(name, unit, help, origin string, labels ...string) *metric.Desc {
	return metric.New(metric.Desc{
		Name: name, Kind: metric.Counter, Unit: unit, Help: help, Source: metric.Kernel, Origin: origin,
		Labels: append(append([]string{}, workloadLabels...), labels...),
	})
}

func timesOf(name, label, help string) *metric.Desc {
	return metric.New(metric.Desc{
		Name: name, Kind: metric.Histogram, Unit: "seconds", Help: help, Source: metric.Kernel,
		Origin: "uprobes on functions of the untrusted runtime and on their returns",
		Labels: append(slices.Clone(workloadLabels), label, "source"),
	})
}

func newFamilies() *families {
	file := []string{"file", "runtime"}[:2:2]
	return &families{
		transitions: perWorkload("teescope_enclave_transitions_total", "transitions",
			"Crossings of the enclave boundary, by kind: eenter, eexit, aex. The label source says how they were measured; "+
				"sampled is an estimate from intervals. What a runtime does not show is absent: aex of others than Gramine are seen in processes that --watch names.",
			fromRuntimes+"; a breakpoint on the ENCLU of the vDSO", "kind", "source"),
		ecalls: perWorkload("teescope_ecalls_total", "calls",
			"Calls into the enclave, by the number or name of the function. Switchless calls need not cross the boundary.",
			"sgx_ecall, oe_ecall, occlum_ecall_*", "ecall", "mode", "source"),
		ocalls: perWorkload("teescope_ocalls_total", "calls",
			"Calls out of the enclave, by the name of the function, or its number where the file has no symbols.",
			"functions of the OCALL table, __oe_dispatch_ocall, occlum_ocall_*, sgx_ocall_*", "ocall", "source"),
		signals: perWorkload("teescope_enclave_signals_total", "signals",
			"Signals that Gramine delivered into the enclave: sync are exceptions, async come from outside.",
			"Gramine's thread control blocks", "kind", "source"),
		estimated: perWorkload("teescope_enclave_exits_estimated_total", "exits",
			"A guess at the exits of enclaves of which nothing is measured: the system calls of their programs since they were seen. "+
				"No bound: an OCALL makes none or several, and threads that never enter the enclave make some. Never a part of teescope_enclave_transitions_total.",
			"tracepoint sys_enter", "source"),
		ecallTime: timesOf("teescope_ecall_seconds", "ecall",
			"Time from the call of an ECALL to its return, the OCALLs in it included, in processes that --watch names. "+
				"What was sampled stands for the others, but for calls longer than a window."),
		ocallTime: timesOf("teescope_ocall_seconds", "ocall",
			"Time that an OCALL spent outside, without entering and leaving the enclave, in processes that --watch names. "+
				"What was sampled stands for the others, but for calls longer than a window."),
		probed: metric.New(metric.Desc{
			Name: "teescope_transition_probes_info", Kind: metric.Info, Labels: append(file, "state", "reason"), Source: metric.Agent,
			Help:   "Always 1; how the functions of a file are probed: exact, sampled because they are called more often than the budget allows, or none.",
			Origin: "the agent",
		}),
		share: metric.New(metric.Desc{
			Name: "teescope_transition_sampled_ratio", Kind: metric.Gauge, Unit: "ratio", Labels: file, Source: metric.Agent,
			Help:   "Share of the time in which the functions of a file are probed; 1 means that every call is counted.",
			Origin: "the agent",
		}),
		deviation: metric.New(metric.Desc{
			Name: "teescope_transition_sampling_error_ratio", Kind: metric.Gauge, Unit: "ratio", Labels: file, Source: metric.Agent,
			Help: "Standard error of all that was sampled in a file, as a share of it: the true number is within twice that in 19 of 20 cases. " +
				"Absent before ten cycles were sampled.",
			Origin: "differences between neighbouring intervals",
		}),
		hits: metric.New(metric.Desc{
			Name: "teescope_transition_probe_cost_total", Kind: metric.Counter, Unit: "hits", Labels: file, Source: metric.Kernel,
			Help:   "What probing a file has cost, in hits of a cheap probe (0.6 us): one on an instruction that the kernel does not emulate counts as several.",
			Origin: "uprobes",
		}),
		timed: metric.New(metric.Desc{
			Name: "teescope_transition_timed", Kind: metric.Gauge, Labels: append(file, "reason"), Source: metric.Agent,
			Help:   "1 while the calls of a file are timed, because a process that --watch names has it, 0 where they cannot be: the label reason says why.",
			Origin: "the agent",
		}),
		cost: metric.New(metric.Desc{
			Name: "teescope_enclave_crossing_seconds", Kind: metric.Gauge, Unit: "seconds", Labels: []string{"bound"}, Source: metric.Agent,
			Help: "What leaving an enclave and coming back costs on this machine, as its user has measured it: `bound` is low and high. " +
				"The analysis then estimates with it. Absent where nobody has said it.",
			Origin: "transitions.cost",
		}),
		lost: metric.New(metric.Desc{
			Name: "teescope_transitions_lost_total", Kind: metric.Counter, Unit: "events", Labels: []string{"what"}, Source: metric.Kernel,
			Help: "What could not be counted: calls, tables of OCALLs, processes and threads of Gramine without room in the kernel's maps, " +
				"and ends of threads that were not seen (unseen); durations without room, and calls that outlasted the window that they were to be timed in (ends).",
			Origin: "eBPF maps of the agent",
		}),
	}
}

// all lists the descriptions in the order of the documentation.
func (f *families) all() []*metric.Desc {
	return []*metric.Desc{f.transitions, f.estimated, f.ecalls, f.ocalls, f.ecallTime, f.ocallTime, f.signals, f.probed, f.share, f.deviation, f.hits, f.timed, f.cost, f.lost}
}
