// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// ThreadChurn names the rule of this file.
const ThreadChurn = "thread-churn"

const (
	// churnStarts is the rate of new threads from which on it is churn. Proposed (rule 18 of the advisor).
	churnStarts = 10
	// churnLife is the mean life of a thread, or of a process, up to which it is short: seconds. Proposed.
	churnLife = 60.0
	// handshakeSockets and handshakeBinds are the least sockets and binds for each new thread when each makes an
	// encrypted pipe to be woken by. Measured: 2 and 1 in gramine-direct.
	handshakeSockets, handshakeBinds = 1.5, 0.75
	// What a thread costs with that pipe: seconds. Measured: 2,494 to 2,741 us with gramine-direct (musl, 2,000 threads
	// created and joined, a virtual machine of 2 CPUs), less the 82 us that a thread costs anyway.
	handshakeLow, handshakeHigh = 2.41e-3, 2.74e-3
	// handshakeCalls is how many calls leave the enclave for it. Measured: of strace, for each thread.
	handshakeCalls = 28
	// joinFutex is how many futex calls creating, waking and joining a thread makes at most. Measured: about 6 in
	// gramine-direct.
	joinFutex = 6
	// What a thread costs without: seconds. Measured: 19.7 us (bench, 6.18) to 82 us (glibc, as above).
	threadLow, threadHigh = 19.7e-6, 82e-6
)

func threadChurn() engine.Rule {
	return engine.Rule{
		Name: ThreadChurn, Title: "threads are created and end all the time",
		Signals: []engine.Signal{teeSignal, cpuSignal, threadsSignal, callsSignal, threadStartsSignal},
		Judge:   judgeThreadChurn,
		NotWhen: []string{
			"a pool of threads is being filled, at the start or when the load rises",
			"threads of SCONE and of Go live inside of the enclave: those that are seen are the runtime's own",
		},
		Sources: []string{
			"the thread benchmark of Gramine: most of clone is a TLS handshake for a pollable event",
			"measured: 2,000 threads created and joined on a virtual machine of 2 CPUs: glibc 50 to 82 us each, gramine-direct 2,494 to 2,741 us",
			"J. Little, 1961: threads there are = threads created a second x mean life",
		},
	}
}

func judgeThreadChurn(w engine.Workload) *engine.Verdict {
	p := placeOf(w)
	cores, busy := cpuOf(w)
	v, ok := figures(w, threadStartsSignal, threadsSignal)
	if !p.known() || !busy || !ok || v[threadStartsSignal] < churnStarts {
		return nil
	}
	life := v[threadsSignal] / v[threadStartsSignal]
	if life > churnLife {
		return nil
	}
	calls := callsOf(w)
	// Gramine's pipes are told by their calls too; where calls are not counted, by the runtime alone.
	handshakes := p.family() == "Gramine"
	if len(calls) > 0 {
		handshakes = handshakes && calls["socket"] >= handshakeSockets*v[threadStartsSignal] && calls["bind"] >= handshakeBinds*v[threadStartsSignal]
	}
	low, high := v[threadStartsSignal]*threadLow/cores, v[threadStartsSignal]*threadHigh/cores
	assumptions := []string{cpuBound, "a thread costs 20 to 82 us to create and join (measured on virtual machines of 2 CPUs)"}
	if handshakes {
		low, high = v[threadStartsSignal]*handshakeLow/cores, v[threadStartsSignal]*handshakeHigh/cores
		assumptions = []string{cpuBound, "a thread costs 2.4 to 2.7 ms with its encrypted pipe (measured with gramine-direct on a virtual machine of 2 CPUs)"}
		if p.enclave() {
			_, out := shares(w, w.OCALL, handshakeCalls*v[threadStartsSignal], cores)
			high += out
			assumptions = append(assumptions, "at most each of its 28 calls leaves the enclave", w.OCALL.Assumption(), w.Clock.Assumption())
		}
	}
	least := worthwhile
	if !p.enclave() {
		least = nativeWorthwhile
	}
	if middle(low, min(high, 1)) < least {
		return nil
	}
	verdict := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s threads a second are created and live for %s s in the mean, which takes %s of the CPU time",
			figure(v[threadStartsSignal]), figure(life), between(low, high)),
		Evidence: []string{threadStartsSignal.Name, threadsSignal.Name, cpuSignal.Name},
		Advice: p.advice(
			tip{"", "keep threads in a pool, and let each one serve many requests or connections"},
			tip{"Gramine", "prefer an event loop to a thread for each connection: a thread costs thirty times what it costs outside"},
			tip{"Intel SDK, Open Enclave", "keep the threads that enter the enclave, and let each make many calls"},
		),
	}
	if handshakes {
		verdict.Evidence = append(verdict.Evidence, callsSignal.With("syscall", "socket"), callsSignal.With("syscall", "bind"))
		verdict.Cause += "; each makes an encrypted pipe to be woken by"
	}
	if futex := calls["futex"]; futex > 0 && futex <= joinFutex*v[threadStartsSignal] {
		verdict.Supersedes = []string{LockContention, ContextSwitchStorm} // they wait for threads to end
	}
	if !p.enclave() {
		verdict.Severity = analysis.Info
		cost := v[threadStartsSignal] * handshakeLow
		if !handshakes {
			verdict.Cause += fmt.Sprintf("; in an enclave under Gramine it would take %s cores or more", figure(cost))
		}
		return verdict
	}
	verdict.Gain = analysis.Amdahl(low, high, assumptions...)
	return verdict
}
