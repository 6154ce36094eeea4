// SPDX-License-Identifier: Apache-2.0

package count

import (
	"slices"

	"github.com/teescope/teescope/internal/lib/metric"
)

// workloadLabels are the labels of every family about a workload.
var workloadLabels = []string{"workload", "container", "pod", "namespace"}

// Families are all families that the backend can emit.
type Families struct {
	Transitions, ECalls, OCalls, Signals, AEX     *metric.Desc
	AEXVariance                                   *metric.Desc
	ECallTime, OCallTime, Estimated               *metric.Desc
	Probed, Sampled, Deviation, Hits, Timed, Lost *metric.Desc
	CallsLost, Cost, Refused, Age                 *metric.Desc
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
		Name: name, Kind: metric.Histogram, Unit: "seconds", Bounds: seconds(), Help: help, Source: metric.Kernel,
		Origin: "uprobes on functions of the untrusted runtime and on their returns",
		Labels: append(slices.Clone(workloadLabels), label, "source"),
	})
}

// NewFamilies returns the descriptions.
func NewFamilies() *Families {
	file := []string{"file", "runtime"}[:2:2]
	return &Families{
		Transitions: perWorkload("teescope_enclave_transitions_total", "transitions",
			"Transitions of the enclave boundary by kind: eenter, eexit, aex. The label source names the method; "+
				"sampled is an estimate from windows. Kinds that a runtime does not show are absent: aex is counted for Gramine, and for processes that --watch names.",
			fromRuntimes+"; breakpoints on the ENCLU of the vDSO, or on those in the code of the runtime", "kind", "source"),
		ECalls: perWorkload("teescope_ecalls_total", "calls",
			"Calls into the enclave, by the name or number of the function. Switchless calls may not cross the boundary.",
			"sgx_ecall, oe_ecall, occlum_ecall_*", "ecall", "mode", "source"),
		OCalls: perWorkload("teescope_ocalls_total", "calls",
			"Calls out of the enclave, by the name of the function, or by its number when the file has no symbols. "+
				"mode is switchless for calls that a thread outside made while the caller stayed inside (Exitless of Gramine, switchless calls of the Intel SDK), else normal. "+
				"With the source gramine_exits_sampled their sum is that of the exits that Gramine counts.",
			"functions of the OCALL table, __oe_dispatch_ocall, occlum_ocall_*, sgx_ocall_*; return addresses in rpc_thread_loop, process_switchless_call",
			"ocall", "mode", "source"),
		Signals: perWorkload("teescope_enclave_signals_total", "signals",
			"Signals that Gramine delivered into the enclave: kind is sync for exceptions, async for signals from outside.",
			"Gramine's thread control blocks", "kind", "source"),
		AEX: perWorkload("teescope_enclave_aex_total", "exits",
			"Asynchronous exits of enclaves (AEX) by cause: page_fault, timer, device (interrupts of devices), reschedule (another CPU wakes up a thread on this one), and other. "+
				"With a source that ends in _breakpoint it is the cause of each AEX of teescope_enclave_transitions_total. other then includes exceptions. An interrupt that arrives before the resume may take the place of the cause. "+
				"With the source interrupts it is the number of page faults and interrupts, without exceptions, that arrived while a thread was in an enclave or about to resume it. Two that arrive together count twice. One of a line that devices share counts once for each of its handlers. "+
				"A cause whose tracepoint the kernel lacks is absent, and timer and device are on machines whose timer is that of a hypervisor, such as Hyper-V.",
			"tracepoints page_fault_user, local_timer_entry, irq_handler_entry, reschedule_entry, call_function_entry, call_function_single_entry, irq_work_entry", "cause", "source"),
		AEXVariance: perWorkload("teescope_enclave_aex_variance_total", "exits squared",
			"Variance of sampled asynchronous exits by cause, as an estimate. An interval of about 95 % for their number in a range of a minute or more is the increase of teescope_enclave_aex_total, "+
				"plus or minus 1.96 times the square root of the increase of this metric with the same labels. It is wide for exits in bursts, and too narrow until a window has contained a burst. Absent where every exit is counted. Workloads and causes share the windows, so their variances do not add up.",
			"half the squared difference between neighbouring windows, and the mean square of the clusters of the last ten minutes where windows are empty", "cause", "source"),
		Estimated: perWorkload("teescope_enclave_exits_estimated_total", "exits",
			"Rough estimate of the exits of enclaves without a measurement: the system calls of their programs since they were first seen. "+
				"It is not a bound: an OCALL makes none or several system calls, and threads outside the enclave make some too. It is never part of teescope_enclave_transitions_total.",
			"tracepoint sys_enter", "source"),
		ECallTime: timesOf("teescope_ecall_seconds", "ecall",
			"Time from the call of an ECALL to its return in seconds, including its OCALLs, in processes that --watch names. "+
				"When calls are sampled, counts are scaled up, and calls longer than a window are missing."),
		OCallTime: timesOf("teescope_ocall_seconds", "ocall",
			"Time that an OCALL spent outside the enclave in seconds, without the crossings themselves, in processes that --watch names. Switchless OCALLs are not timed. "+
				"When calls are sampled, counts are scaled up, and calls longer than a window are missing."),
		CallsLost: perWorkload("teescope_enclave_calls_lost_total", "calls",
			"Calls of ECALLs and OCALLs that were not counted, because the user or control group of their process has reached its quota of counters. There is one counter for each process and function. "+
				"The quota is the number of free counters. Absent if no call was lost.",
			"eBPF maps of the agent"),
		Probed: metric.New(metric.Desc{
			Name: "teescope_transition_probes_info", Kind: metric.Info, Labels: append(file, "state", "reason"), Source: metric.Agent,
			Help: "Always 1. state is the way in which the functions of a file are probed: exact, sampled (they are called more often than the budget allows), or none. " +
				"The files vdso and enclu stand for the breakpoints in the vDSO and in the code of runtimes.",
			Origin: "the agent",
		}),
		Sampled: metric.New(metric.Desc{
			Name: "teescope_transition_sampled_ratio", Kind: metric.Gauge, Unit: "ratio", Labels: file, Source: metric.Agent,
			Help:   "Share of the time in which the functions of a file are probed. 1 means that every call is counted.",
			Origin: "the agent",
		}),
		Deviation: metric.New(metric.Desc{
			Name: "teescope_transition_sampling_error_ratio", Kind: metric.Gauge, Unit: "ratio", Labels: file, Source: metric.Agent,
			Help: "Relative standard error of the sampled counts of a file. The true count is within two standard errors in 19 of 20 cases. " +
				"Absent until ten cycles have been sampled.",
			Origin: "differences between neighbouring intervals",
		}),
		Hits: metric.New(metric.Desc{
			Name: "teescope_transition_probe_cost_total", Kind: metric.Counter, Unit: "hits", Labels: file, Source: metric.Kernel,
			Help:   "Cost of probing a file, in hits of a cheap probe (0.6 us). A hit on an instruction that the kernel cannot emulate counts as several.",
			Origin: "uprobes",
		}),
		Timed: metric.New(metric.Desc{
			Name: "teescope_transition_timed", Kind: metric.Gauge, Labels: append(file, "reason"), Source: metric.Agent,
			Help:   "1 while the calls of a file are timed, because a process that --watch names maps it. 0 when they cannot be timed; the label reason says why.",
			Origin: "the agent",
		}),
		Cost: metric.New(metric.Desc{
			Name: "teescope_enclave_crossing_seconds", Kind: metric.Gauge, Unit: "seconds", Labels: []string{"bound"}, Source: metric.Agent,
			Help: "Cost of leaving and entering an enclave once on this machine in seconds, as configured by transitions.cost. bound is low or " +
				"high. The analysis uses it for its estimates. Absent when it is not configured.",
			Origin: "transitions.cost",
		}),
		Age: metric.New(metric.Desc{
			Name: "teescope_enclave_counts_age_seconds", Kind: metric.Gauge, Unit: "seconds", Source: metric.Agent,
			Help: "Age of the counts of crossings in seconds. 0 means that they were read for this scrape. On an overloaded machine the agent repeats those of an " +
				"earlier scrape for up to 10 s, while it attaches or detaches probes.",
			Origin: "the agent",
		}),
		Refused: metric.New(metric.Desc{
			Name: "teescope_transition_places_refused_total", Kind: metric.Counter, Unit: "requests", Labels: []string{"what"}, Source: metric.Agent,
			Help: "Requests that were refused because a limit was reached, by what was requested. The files and functions are not probed. The processes are not watched at the enclave boundary in this scan. The code of enclu_files is not searched for ENCLU. " +
				"The limit is that of the agent, or the quota of the user or control group of the process.",
			Origin: "the agent",
		}),
		Lost: metric.New(metric.Desc{
			Name: "teescope_transitions_lost_total", Kind: metric.Counter, Unit: "events", Labels: []string{"what"}, Source: metric.Kernel,
			Help: "Events that were not counted, by kind. The kernel's maps were full for calls, tables of OCALLs, processes and threads of Gramine, durations, transitions of single threads (threads_crossings), and pairs of calls. " +
				"unseen are ends of threads that were missed. resets are threads of Gramine that set their counters to 0 while they ran (SIGUSR1). ends are calls that lasted longer than their window. durations are also those of calls with eight others inside that have not returned.",
			Origin: "eBPF maps of the agent",
		}),
	}
}

// All returns the descriptions in the order of the documentation.
func (f *Families) All() []*metric.Desc {
	return []*metric.Desc{f.Transitions, f.AEX, f.AEXVariance, f.Estimated, f.ECalls, f.OCalls, f.ECallTime, f.OCallTime, f.Signals, f.Probed, f.Sampled, f.Deviation, f.Hits, f.Timed, f.CallsLost, f.Cost, f.Age, f.Refused, f.Lost}
}
