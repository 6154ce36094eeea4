// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// PollingLoop names the rule of this file.
const PollingLoop = "polling-loop"

const (
	// pollEmpty is the least part of the polls that find nothing. Proposed.
	pollEmpty = 0.5
	// pollRate is the least rate of empty polls. Proposed: slower loops cost too little to be seen.
	pollRate = 1000
)

func pollingLoop() engine.Rule {
	return engine.Rule{
		Name: PollingLoop, Title: "a loop that asks for work and finds none",
		Signals: []engine.Signal{teeSignal, cpuSignal, callsSignal, switchesSignal, transitionsSignal},
		Judge:   judgePollingLoop,
		NotWhen: []string{
			"the loop has CPUs of its own that nobody else wants, and latency is worth them",
			"events are served by memory that is shared, without a system call for each (io_uring, DPDK)",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Effects of system calls / ocalls: epoll is made of poll",
			"epoll_wait(2), poll(2): a call that finds nothing and may wait sleeps, so it is seen as a voluntary switch",
			cost.OCALL.Source, cost.Syscall.Source,
		},
	}
}

// emptyPolls is a lower bound of the polls that neither waited nor found anything. A poll that waits sleeps, which is a
// voluntary switch, and after one that finds something there is a call that serves it.
func emptyPolls(w engine.Workload) (empty, polls float64, ok bool) {
	calls := callsOf(w)
	waits, measured := w.By(switchesSignal, "kind")["voluntary"]
	if len(calls) == 0 || !measured {
		return 0, 0, false
	}
	polls = sumOf(calls, pollCalls...)
	served := sumOf(calls, ioCalls...) + sumOf(calls, "accept", "accept4", "connect", "getsockopt", "shutdown")
	return polls - served - waits, polls, true
}

func judgePollingLoop(w engine.Workload) *engine.Verdict {
	p := placeOf(w)
	cores, busy := cpuOf(w)
	empty, polls, ok := emptyPolls(w)
	if !p.known() || !busy || !ok || empty < pollRate || empty < pollEmpty*polls {
		return nil
	}
	calls := callsOf(w)
	all := total(calls)
	each := cost.Cost(cost.Syscall)
	if leaving(w, p, empty) == 0 {
		p.tee = teeNone // it is the half outside that polls
	}
	if p.enclave() {
		each = crossing(w, p, all)
	}
	low, high := shares(w, each, empty, cores)
	high = min(high, empty/all)
	least := worthwhile
	if !p.enclave() {
		least = nativeWorthwhile
	}
	if low = min(low, high); middle(low, high) < least {
		return nil
	}
	top := largest(calls, pollCalls...)
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s is called %s times/s, and at least %s of all polls neither wait nor find anything",
			top, figure(calls[top]), percent(empty/polls)),
		Evidence: append([]string{callsSignal.With("syscall", top), switchesSignal.With("kind", "voluntary"), cpuSignal.Name}, shownMost(calls, 2, ioCalls)...),
		Advice: p.advice(
			tip{"", "let the call wait: a timeout above 0, or none; wake it with an eventfd where another thread has news"},
			tip{"", "wait longer after each empty poll, and not at all after one that found something"},
			tip{"Intel SDK, Open Enclave", "wait outside of the enclave, and enter it when there is something to do"},
		),
	}
	if !p.enclave() {
		v.Severity = analysis.Info
		outLow, outHigh := w.OCALL.CPU(empty, w.Clock)
		v.Cause += fmt.Sprintf("; in an enclave it would cost %s to %s cores", figure(outLow), figure(outHigh))
		return v
	}
	v.Gain = analysis.Amdahl(0, high, each.Assumption(), w.Clock.Assumption(),
		"at best the loop takes the time from threads that have work; at worst it has a CPU of its own",
		"no call costs more than another: empty polls take at most their part of all calls")
	if empty >= needlessMost*all {
		v.Supersedes = []string{OCALLBound}
	}
	return v
}
