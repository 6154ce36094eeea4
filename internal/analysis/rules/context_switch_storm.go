// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"math"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// ContextSwitchStorm names the rule of this file.
const ContextSwitchStorm = "context-switch-storm"

const (
	// stormSwitches is the least rate of context switches. Proposed.
	stormSwitches = 1000
	// stormShare is the least share of the CPU time that the switches take, at the middle of their cost. Proposed.
	stormShare = 0.10
	// stormWaits is the least part of exits that a wait follows. With fewer waits the exits themselves are the cause.
	// Proposed.
	stormWaits = 0.25
	// mostOfWaits is the least number of calls that wait for clients, in parts of the waits, for the waits to be for them. By definition.
	mostOfWaits = 0.5
)

// Thresholds that the configuration can replace.
var (
	stormRate = engine.Threshold{Name: "switches", Default: stormSwitches, Unit: "1/s", Help: "minimum rate of context switches"}
	stormCost = engine.Threshold{Name: "share", Default: stormShare, Unit: "ratio", Help: "minimum share of the CPU time"}
)

func contextSwitchStorm() engine.Rule {
	return engine.Rule{
		Name: ContextSwitchStorm, Title: "threads are switched in and out very often",
		Code:       codelink.Waits,
		Threads:    analysis.ThreadSleeps,
		Thresholds: []engine.Threshold{stormRate, stormCost},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, switchesSignal, callsSignal, transitionsSignal, waitSignal, threadsSignal,
			coresSignal, idleSignal,
		},
		Judge: judgeContextSwitchStorm,
		NotWhen: []string{
			"the workload waits for its clients: each request wakes it, and a higher load makes it wait less often",
			"the threads hand work to each other by design, such as the stages of a pipeline",
		},
		Sources: []string{
			"Krahn et al., TEEMon, Middleware 2020, 6.5: Graphene-SGX switches up to 12 times as often as other frameworks",
			cost.Switch.Source, cost.OCALL.Source, cost.AEX.Source,
		},
	}
}

func judgeContextSwitchStorm(w engine.Workload) *engine.Verdict {
	e := environmentOf(w)
	cores, busy := cpuOf(w)
	kinds := w.By(switchesSignal, "kind")
	waits, taken := kinds["voluntary"], kinds["involuntary"]
	if !e.known() || !busy || waits+taken < w.LeastFor(stormRate) {
		return nil
	}
	exits, counted := exitsOf(w)
	if e.enclave() && counted && waits >= taken && waits < w.Least(stormWaits)*exits {
		return nil
	}
	low, high := shares(w, cost.Switch, waits+taken, cores)
	assumptions := []string{cost.Switch.Assumption(), w.Clock.Assumption()}
	var exitPart, asyncPart float64 // of the upper end
	if e.enclave() {
		// A thread leaves the enclave to wait. A thread that is preempted inside leaves by an exception.
		_, out := shares(w, w.OCALL, waits, cores)
		_, aex := shares(w, cost.AEX, taken, cores)
		high += out + aex
		exitPart, asyncPart = out/high, aex/high
		assumptions = append(assumptions, "at most, each wait is an OCALL and each preemption an asynchronous exit",
			w.OCALL.Assumption(), cost.AEX.Assumption())
	}
	if low, high = capped(low, high, 1); middle(low, high) < w.LeastFor(stormCost) {
		return nil
	}
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Evidence:   []string{switchesSignal.With("kind", "voluntary"), switchesSignal.With("kind", "involuntary"), cpuSignal.Name, waitSignal.Name, threadsSignal.Name, coresSignal.Name},
	}
	if waits >= taken {
		v.Cause, v.Advice = waiting(w, e, waits)
		v.Evidence = append(v.Evidence, shownMost(callsOf(w), 2, waitCalls)...)
	} else {
		v.Cause, v.Advice = overcommitted(w, e, taken)
	}
	v.Cause += fmt.Sprintf(": the switches take %s of the CPU time", between(low, high))
	if !e.enclave() {
		v.Severity = analysis.Info
		return v
	}
	if waits >= taken && waitsForClients(w, waits) {
		v.Severity = analysis.Info
		v.Cause += "; nothing limits the workload, and with more requests it waits less often"
		return v
	}
	v.Stage = engine.Symptom
	v.Draws(engine.Exits, waits, 0, exitPart)
	v.Draws(engine.AsyncExits, taken, 0, asyncPart)
	v.Saves(w, low*cores, high*cores, append(assumptions, "the work that threads wait for is not done sooner")...)
	return v
}

// waitCalls are calls in which a thread sleeps until another thread or a client acts.
var waitCalls = append([]string{"futex", "nanosleep", "clock_nanosleep", "read", "recvfrom", "recvmsg", "sched_yield", "wait4"}, pollCalls...)

// waitsForClients reports whether the waits are mostly for clients, and the threads could do more work than they get. What was not
// measured does not show that.
func waitsForClients(w engine.Workload, waits float64) bool {
	if math.IsNaN(w.Load.Wait) || math.IsNaN(w.Load.Busiest) {
		return false
	}
	calls := callsOf(w)
	clients, others := sumOf(calls, clientCalls...), sumOf(calls, "futex", "nanosleep", "clock_nanosleep", "sched_yield", "wait4")
	return clients >= w.Least(mostOfWaits)*waits && clients > others && w.Load.Limit(0, false) == ""
}

// waiting returns the cause and advice for threads that give up the CPU.
func waiting(w engine.Workload, e environment, waits float64) (cause string, advice []string) {
	top := largest(callsOf(w), waitCalls...)
	cause = fmt.Sprintf("threads wait %s times/s", figure(waits))
	if callsOf(w)[top] > 0 {
		cause += ", mostly in " + top
	}
	lock := ""
	if top == "futex" {
		lock = "let locks spin for some microseconds before they wait, and hold them for a shorter time"
	}
	return cause, e.advice(
		tip{"", lock},
		tip{"", "give each thread more work before it waits: batches, pipelined requests, fewer and longer connections"},
		tip{"", "use fewer threads, so that each one finds work without waiting"},
		tip{"Gramine", "if this is Graphene-SGX, move to a current release of Gramine, its successor"},
		tip{"SCONE", "reduce the threads in the enclave and the threads outside for system calls to what the load needs: idle ones sleep and are woken"},
	)
}

// overcommitted returns the cause and advice for threads that are preempted.
func overcommitted(w engine.Workload, e environment, taken float64) (cause string, advice []string) {
	cause = fmt.Sprintf("threads lose the CPU %s times/s", figure(taken))
	if wait, told := w.Value(waitSignal); told {
		cause += fmt.Sprintf(", and %s of them wait for a CPU on average", figure(wait))
	}
	return cause, e.advice(
		tip{"", "run no more busy threads than there are CPUs, and count the other workloads of the machine too"},
		tip{"", "pin the workload to CPUs that nothing else uses (taskset, isolcpus, nohz_full, CPU manager policy static)"},
		tip{"Gramine", "count the sgx.insecure__rpc_thread_num threads of Exitless too: they are busy as well"},
	)
}
