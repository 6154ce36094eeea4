// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// NeedlessSyscalls names the rule of this file.
const NeedlessSyscalls = "needless-syscalls"

const (
	// needlessDominates is how many needless calls there are for each that does I/O when they dominate it. Proposed;
	// it was 10 in the case that the TEEMon paper reports (6.4).
	needlessDominates = 1.0
	// needlessMost is the share of all calls from which on the needless ones explain what leaving the enclave costs.
	// Proposed.
	needlessMost = 0.5
)

func needlessSyscalls() engine.Rule {
	return engine.Rule{
		Name: NeedlessSyscalls, Title: "system calls that need not leave the enclave",
		Signals: []engine.Signal{teeSignal, cpuSignal, callsSignal, ocallsSignal, switchesSignal, transitionsSignal},
		Judge:   judgeNeedlessSyscalls,
		NotWhen: []string{
			"the calls are made by a part of the workload that is outside of the enclave (of programs of the Intel SDK and Open Enclave only OCALLs are looked at)",
			"a futex call that neither waits nor wakes anybody may still be needed, where threads outside share the lock",
			"the workload waits for its clients: fewer calls then save CPU time and bring no throughput",
		},
		Sources: []string{
			"Krahn et al., TEEMon, Middleware 2020, 6.4: Redis on two commits of SCONE, 267,952 to 621,504 operations/s",
			"Gramine, Performance tuning and analysis, Effects of system calls / ocalls: gettimeofday",
			cost.OCALL.Source, cost.Exitless.Source,
		},
	}
}

// needlessCalls are the rates of the calls that an enclave could answer itself. Of futex calls those are left out that
// may have slept: such a call waits for something, and leaving is not what it costs.
func needlessCalls(w engine.Workload, calls map[string]float64) map[string]float64 {
	found := make(map[string]float64)
	for _, name := range slices.Concat(clockCalls, selfCalls, []string{"sched_yield"}) {
		if calls[name] > 0 {
			found[name] = calls[name]
		}
	}
	if waits, measured := w.By(switchesSignal, "kind")["voluntary"]; measured {
		if rest := calls["futex"] - waits; rest > 0 {
			found["futex"] = rest
		}
	}
	return found
}

func judgeNeedlessSyscalls(w engine.Workload) *engine.Verdict {
	p := placeOf(w)
	cores, busy := cpuOf(w)
	calls, shown := bySyscall(w, p)
	if !p.known() || !busy || len(calls) == 0 || !p.enclave() && p.runtime == "" {
		return nil
	}
	found := needlessCalls(w, calls)
	rate, io, all := total(found), sumOf(calls, ioCalls...), total(calls)
	if rate <= 0 || rate < needlessDominates*io {
		return nil
	}
	cost := crossing(w, p, all)
	if !p.enclave() {
		cost = w.OCALL
	}
	low, high := shares(w, cost, rate, cores)
	// All calls go the same way: these cannot take more of the time than their part of the calls.
	bound := rate / all
	if middle(low, min(high, bound)) < worthwhile {
		return nil
	}
	top := largest(found, slices.Collect(maps.Keys(found))...)
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s is called %s times/s, and calls that need not leave the enclave are made %s times/s in all, against %s/s that do I/O",
			top, figure(found[top]), figure(rate), figure(io)),
		Evidence: []string{shown(top), cpuSignal.Name},
		Advice:   needlessAdvice(p, top),
	}
	for _, call := range mostOf(calls, 2, ioCalls) {
		v.Evidence = append(v.Evidence, shown(call))
	}
	if !p.enclave() {
		v.Severity, v.Confidence = analysis.Info, analysis.Possible
		v.Cause += fmt.Sprintf("; outside of an enclave that costs little, inside it would cost %s of the CPU time used now", between(low, high))
		return v
	}
	if len(w.Samples(ocallsSignal)) > 0 {
		v.Evidence = append(v.Evidence, ocallsSignal.Name)
	}
	v.Gain = analysis.Amdahl(low, min(high, bound), cost.Assumption(), w.Clock.Assumption(), cpuBound,
		"no call costs more than another: the needless ones take at most their part of all calls")
	if rate >= needlessMost*all {
		v.Supersedes = []string{OCALLBound}
	}
	return v
}

// mostOf are the n most frequent calls of a list that there are.
func mostOf(calls map[string]float64, n int, names []string) (most []string) {
	left := slices.Clone(names)
	for len(most) < n && len(left) > 0 {
		top := largest(calls, left...)
		if calls[top] <= 0 {
			break
		}
		most = append(most, top)
		left = slices.DeleteFunc(left, func(name string) bool { return name == top })
	}
	return most
}

// shownMost names the same as evidence.
func shownMost(calls map[string]float64, n int, names []string) []string {
	most := mostOf(calls, n, names)
	for i, call := range most {
		most[i] = callsSignal.With("syscall", call)
	}
	return most
}

func needlessAdvice(p place, top string) []string {
	switch {
	case slices.Contains(clockCalls, top):
		return p.advice(
			tip{"Gramine", "run on a processor that allows RDTSC in enclaves (Ice Lake or later): Gramine then tells the time without leaving"},
			tip{"SCONE", "use a release that answers clock_gettime inside of the enclave; TEEMon's authors gained a factor of 2.3 by that"},
			tip{"Intel SDK, Open Enclave", "read RDTSC inside of the enclave where the processor allows it, or a time that a thread outside writes to shared memory"},
			tip{"", "ask for the time less often: once for each batch of events, and keep it"},
		)
	case top == "sched_yield":
		return p.advice(
			tip{"", "replace loops around sched_yield by a lock that waits, or by a few hundred PAUSE instructions before it"},
			tip{"Gramine", "let sys.debug__mock_syscalls answer sched_yield to try what it brings (from 1.8, for debugging only)"},
		)
	case top == "futex":
		return p.advice(
			tip{"", "let locks spin for some microseconds inside of the enclave before they call futex, and do not wake when nobody waits"},
			tip{"Intel SDK, Open Enclave", "use spin locks for short critical sections: a mutex of the SDK leaves the enclave when it wakes somebody"},
			tip{"", "use fewer threads, or locks that are shared by fewer of them"},
		)
	}
	return p.advice(tip{"", "call " + top + " once and keep the answer: it does not change while the thread lives"})
}
