// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/lib/text"
)

// PollingLoop names the rule of this file.
const PollingLoop = "polling-loop"

const (
	// pollEmpty is the least share of polls that find nothing. Proposed.
	pollEmpty = 0.5
	// pollRate is the least rate of empty polls. Proposed: slower loops cost too little.
	pollRate = 1000
)

// pollsEmpty can be replaced in the configuration.
var pollsEmpty = engine.Threshold{Name: "polls", Default: pollRate, Unit: "1/s", Help: "minimum rate of polls that find nothing"}

func pollingLoop() engine.Rule {
	return engine.Rule{
		Name: PollingLoop, Title: "a loop polls for work and finds none",
		Code:       codelink.Calls,
		Threads:    analysis.ThreadCPU,
		Thresholds: []engine.Threshold{pollsEmpty},
		Signals:    []engine.Signal{teeSignal, cpuSignal, callsSignal, switchesSignal, transitionsSignal},
		Judge:      judgePollingLoop,
		NotWhen: []string{
			"the loop has CPUs of its own that are not needed otherwise, and low latency justifies them",
			"events arrive through shared memory, without a system call for each (io_uring, DPDK)",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Effects of system calls / ocalls: epoll is made of poll",
			"epoll_wait(2), poll(2): a call that finds nothing and may wait sleeps, which is a voluntary context switch",
			cost.OCALL.Source, cost.Syscall.Source,
		},
	}
}

// emptyPolls returns a lower bound of the polls that neither waited nor found anything. A poll that waits causes a
// voluntary switch. A poll that finds something is followed by a call that serves it.
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
	e := environmentOf(w)
	cores, busy := cpuOf(w)
	empty, polls, ok := emptyPolls(w)
	if !e.known() || !busy || !ok || empty < w.LeastFor(pollsEmpty) || empty < w.Least(pollEmpty)*polls {
		return nil
	}
	calls := callsOf(w)
	all := total(calls)
	each := cost.Cost(cost.Syscall)
	if leaving(w, e, empty) == 0 {
		e.kind = teelabel.None // the half outside polls
	}
	if e.enclave() {
		each = crossing(w, e, all)
	}
	low, high := shares(w, each, empty, cores)
	low, high = capped(low, high, empty/all)
	least := worthwhile
	if !e.enclave() {
		least = nativeWorthwhile
	}
	if middle(low, high) < w.Least(least) {
		return nil
	}
	top := largest(calls, pollCalls...)
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s is called %s times/s, and at least %s of all polls neither wait nor find anything",
			top, figure(calls[top]), text.Percent(empty/polls)),
		Evidence: append([]string{callsSignal.With("syscall", top), switchesSignal.With("kind", "voluntary"), cpuSignal.Name}, shownMost(calls, 2, ioCalls)...),
		Advice: e.advice(
			tip{"", "let the call wait with a timeout above 0 or without one, and let other threads wake it through an eventfd"},
			tip{"", "wait longer after each empty poll, and do not wait after a poll that found something"},
			tip{"Intel SDK, Open Enclave", "wait outside the enclave, and enter it when there is work"},
		),
	}
	if !e.enclave() {
		v.Severity = analysis.Info
		outLow, outHigh := w.OCALL.CPU(empty, w.Clock)
		v.Cause += fmt.Sprintf("; in an enclave the empty polls would cost %s to %s cores", figure(outLow), figure(outHigh))
		return v
	}
	countExits(v, w, each, leaving(w, e, empty))
	v.SavesSpinning(w, low*cores, high*cores, each.Assumption(), w.Clock.Assumption(),
		"the loop itself keeps a thread busy, so a busy thread does not show that the throughput is limited",
		"all calls cost the same: the share of empty polls in the time is at most their share in the calls")
	if empty >= needlessMost*all {
		v.Supersedes = []string{OCALLBound}
	}
	return v
}
