// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// ThreadChurn names the rule of this file.
const ThreadChurn = "thread-churn"

const (
	// churnStarts is the least rate of new threads. Proposed.
	churnStarts = 10
	// churnLife is the longest mean life, in seconds, of a short-lived thread or process. Proposed.
	churnLife = 60.0
	// handshakeSockets and handshakeBinds are the least socket and bind calls for each new thread that show that it
	// creates an encrypted pipe for wake-ups. Measured: 2 and 1 in gramine-direct.
	handshakeSockets, handshakeBinds = 1.5, 0.75
	// The cost of a thread with that pipe, in seconds. Measured: 2,494 to 2,741 us with gramine-direct (musl, 2,000
	// threads created and joined, a virtual machine of 2 CPUs), less the 82 us that a thread costs anyway.
	handshakeLow, handshakeHigh = 2.41e-3, 2.74e-3
	// handshakeCalls is the number of calls that leave the enclave for the pipe of a thread. Measured with strace.
	handshakeCalls = 28
	// joinFutex is the largest number of futex calls to create, wake and join a thread. Measured: about 6 in
	// gramine-direct.
	joinFutex = 6
	// The cost of a thread without that pipe, in seconds. Measured: 19.7 us (bench, 6.18) to 82 us (glibc, as above).
	threadLow, threadHigh = 19.7e-6, 82e-6
)

// churnRate can be replaced in the configuration.
var churnRate = engine.Threshold{Name: "threads", Default: churnStarts, Unit: "1/s", Help: "minimum rate of new threads"}

func threadChurn() engine.Rule {
	return engine.Rule{
		Name: ThreadChurn, Title: "many threads are created and end",
		Code:       codelink.Calls,
		Thresholds: []engine.Threshold{churnRate},
		Signals:    []engine.Signal{teeSignal, cpuSignal, threadsSignal, callsSignal, threadStartsSignal},
		Judge:      judgeThreadChurn,
		NotWhen: []string{
			"a pool of threads is growing, at the start or when the load rises",
			"the runtime is SCONE or Go: its threads live inside the enclave, and only the runtime's own are visible",
		},
		Sources: []string{
			"the thread benchmark of Gramine: most of clone is a TLS handshake for a pollable event",
			"measured: 2,000 threads created and joined on a virtual machine of 2 CPUs: glibc 50 to 82 us each, gramine-direct 2,494 to 2,741 us",
			"J. Little, 1961: number of threads = threads created per second x mean life",
		},
	}
}

func judgeThreadChurn(w engine.Workload) *engine.Verdict {
	e := environmentOf(w)
	cores, busy := cpuOf(w)
	v, ok := figures(w, threadStartsSignal, threadsSignal)
	if !e.known() || !busy || !ok || v[threadStartsSignal] < w.LeastFor(churnRate) {
		return nil
	}
	life := v[threadsSignal] / v[threadStartsSignal]
	if life > w.Most(churnLife) {
		return nil
	}
	calls := callsOf(w)
	// The calls confirm Gramine's pipes. Where calls are not counted, only the runtime shows them.
	handshakes := e.family() == "Gramine"
	if len(calls) > 0 {
		handshakes = handshakes && calls["socket"] >= handshakeSockets*v[threadStartsSignal] && calls["bind"] >= handshakeBinds*v[threadStartsSignal]
	}
	exits := 0.0 // part of the upper end that exits take
	low, high := v[threadStartsSignal]*threadLow/cores, v[threadStartsSignal]*threadHigh/cores
	assumptions := []string{"a thread costs 20 to 82 us to create and join (measured on virtual machines of 2 CPUs)"}
	if handshakes {
		low, high = v[threadStartsSignal]*handshakeLow/cores, v[threadStartsSignal]*handshakeHigh/cores
		assumptions = []string{"a thread costs 2.4 to 2.7 ms with its encrypted pipe (measured with gramine-direct on a virtual machine of 2 CPUs)"}
		if e.enclave() {
			_, out := shares(w, w.OCALL, handshakeCalls*v[threadStartsSignal], cores)
			high += out
			exits = out / high
			assumptions = append(assumptions, "at most each of the thread's 28 calls leaves the enclave", w.OCALL.Assumption(), w.Clock.Assumption())
		}
	}
	least := worthwhile
	if !e.enclave() {
		least = nativeWorthwhile
	}
	if low, high = capped(low, high, 1); middle(low, high) < w.Least(least) {
		return nil
	}
	verdict := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s threads/s are created and live for %s s on average, which takes %s of the CPU time",
			figure(v[threadStartsSignal]), figure(life), between(low, high)),
		Evidence: []string{threadStartsSignal.Name, threadsSignal.Name, cpuSignal.Name},
		Advice: e.advice(
			tip{"", "keep threads in a pool, and let each thread serve many requests or connections"},
			tip{"Gramine", "prefer an event loop to a thread for each connection: a thread costs thirty times as much as outside Gramine"},
			tip{"Intel SDK, Open Enclave", "keep the threads that enter the enclave, and let each thread make many calls"},
		),
	}
	if handshakes {
		verdict.Evidence = append(verdict.Evidence, callsSignal.With("syscall", "socket"), callsSignal.With("syscall", "bind"))
		verdict.Cause += "; each makes an encrypted pipe for wake-ups"
	}
	if futex := calls["futex"]; futex > 0 && futex <= joinFutex*v[threadStartsSignal] {
		verdict.Supersedes = []string{LockContention, ContextSwitchStorm} // the calls wait for threads to end
	}
	if !e.enclave() {
		verdict.Severity = analysis.Info
		cost := v[threadStartsSignal] * handshakeLow
		if !handshakes {
			verdict.Cause += fmt.Sprintf("; in an enclave under Gramine this would take at least %s cores", figure(cost))
		}
		return verdict
	}
	verdict.Draws(engine.Exits, handshakeCalls*v[threadStartsSignal], 0, exits)
	verdict.Saves(w, low*cores, high*cores, assumptions...)
	return verdict
}
