// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// NeedlessSyscalls names the rule of this file.
const NeedlessSyscalls = "needless-syscalls"

const (
	// needlessDominates is the least ratio of needless calls to calls that do I/O. Proposed; it was 10 in the case that
	// the TEEMon paper reports (6.4).
	needlessDominates = 1.0
	// needlessMost is the share of all calls above which the needless ones explain the cost of exits. Proposed.
	needlessMost = 0.5
)

// needlessRatio can be replaced in the configuration.
var needlessRatio = engine.Threshold{Name: "ratio", Default: needlessDominates, Unit: "1", Help: "minimum ratio of needless calls to calls that do I/O"}

func needlessSyscalls() engine.Rule {
	return engine.Rule{
		Name: NeedlessSyscalls, Title: "system calls that need not leave the enclave",
		Code:       codelink.Calls,
		Threads:    analysis.ThreadCPU,
		Thresholds: []engine.Threshold{needlessRatio},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, callsSignal, ocallsSignal, switchesSignal, transitionsSignal,
			loadedSignal, machineLoadedSignal, enclaveWorkloadsSignal, stallSignal,
		},
		Judge: judgeNeedlessSyscalls,
		NotWhen: []string{
			"a part of the workload outside the enclave makes the calls (for the Intel SDK and Open Enclave only OCALLs are counted)",
			"threads outside share the lock: a futex call that neither waits nor wakes a thread may then be needed",
			"the throughput is limited by something that is not measured, such as the clients or the network",
		},
		Sources: []string{
			"Krahn et al., TEEMon, Middleware 2020, 6.4: Redis on two commits of SCONE, 267,952 to 621,504 operations/s",
			"Gramine, Performance tuning and analysis, Effects of system calls / ocalls: gettimeofday",
			cost.OCALL.Source, cost.Exitless.Source, cost.Handed.Source,
		},
	}
}

// needlessCalls returns the rates of the calls that an enclave could answer itself. Futex calls that may have slept are
// omitted, because the wait and not the exit is their cost.
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
	e := environmentOf(w)
	cores, busy := cpuOf(w)
	calls, shown := bySyscall(w, e)
	if !e.known() || !busy || len(calls) == 0 || !e.enclave() && e.runtime == "" {
		return nil
	}
	found := needlessCalls(w, calls)
	rate, io, all := total(found), sumOf(calls, ioCalls...), total(calls)
	if rate <= 0 || rate < w.LeastFor(needlessRatio)*io {
		return nil
	}
	cost := crossing(w, e, all)
	if !e.enclave() {
		cost = w.OCALL
	}
	rest, paged := besidesPaging(w, cores)
	low, high := shares(w, cost, rate, rest)
	// All calls cost the same, so the share of these calls in the time is at most their share in the calls.
	bound := rate / all
	if low, high = capped(low, high, bound); middle(low, high) < w.Least(worthwhile) {
		return nil
	}
	top := largest(found, slices.Collect(maps.Keys(found))...)
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s is called %s times/s; all calls that need not leave the enclave are made %s times/s, and calls that do I/O %s times/s",
			top, figure(found[top]), figure(rate), figure(io)),
		Evidence: []string{shown(top), cpuSignal.Name},
		Advice:   needlessAdvice(e, top),
	}
	for _, call := range mostOf(calls, 2, ioCalls) {
		v.Evidence = append(v.Evidence, shown(call))
	}
	if !e.enclave() {
		v.Severity, v.Confidence = analysis.Info, analysis.Possible
		v.Cause += fmt.Sprintf("; this costs little outside an enclave, but would cost %s of the present CPU time inside", between(low, high))
		return v
	}
	v.Cause += fmt.Sprintf("; the calls that need not leave take %s of the CPU time%s", between(low, high), ofTheRest(paged))
	if len(w.Samples(ocallsSignal)) > 0 {
		v.Evidence = append(v.Evidence, ocallsSignal.Name)
	}
	countExits(v, w, cost, rate)
	v.Saves(w, low*rest, high*rest, cost.Assumption(), w.Clock.Assumption(),
		"all calls cost the same: the share of the needless ones in the time is at most their share in the calls")
	if rate >= needlessMost*all {
		v.Supersedes = []string{OCALLBound}
	}
	return v
}

// mostOf returns the n most frequent of the named calls, without those that were not made.
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

// shownMost returns the same calls as names of evidence.
func shownMost(calls map[string]float64, n int, names []string) []string {
	most := mostOf(calls, n, names)
	for i, call := range most {
		most[i] = callsSignal.With("syscall", call)
	}
	return most
}

func needlessAdvice(e environment, top string) []string {
	switch {
	case slices.Contains(clockCalls, top):
		return e.advice(
			tip{"Gramine", "run on a processor that allows RDTSC in enclaves (Ice Lake or later): Gramine then reads the time without an exit"},
			tip{"SCONE", "use a release that answers clock_gettime inside the enclave; TEEMon's authors gained a factor of 2.3"},
			tip{"Intel SDK, Open Enclave", "read RDTSC inside the enclave where the processor allows it, or let a thread outside write the time to shared memory"},
			tip{"", "read the time less often, for example once for each batch of events"},
		)
	case top == "sched_yield":
		return e.advice(
			tip{"", "replace loops around sched_yield by a lock that waits, or spin for a few hundred PAUSE instructions first"},
			tip{"Gramine", "use sys.debug__mock_syscalls for sched_yield to measure the gain (from 1.8, for debugging only)"},
		)
	case top == "futex":
		return e.advice(
			tip{"", "let locks spin for some microseconds inside the enclave before they call futex, and wake only if a thread waits"},
			tip{"Intel SDK, Open Enclave", "use spin locks for short critical sections: a mutex of the SDK leaves the enclave when it wakes a thread"},
			tip{"", "use fewer threads, or share each lock among fewer threads"},
		)
	}
	return e.advice(tip{"", "call " + top + " once and keep the result: it does not change while the thread lives"})
}
