// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// OCALLBound names the rule of this file.
const OCALLBound = "ocall-bound"

// ocallShare is the share of the CPU time that going in and out takes when it is what bounds the workload, at the
// middle of the range of its cost. Proposed (rule 1 of the advisor: 10 % of a core).
const ocallShare = 0.10

func ocallBound() engine.Rule {
	return engine.Rule{
		Name: OCALLBound, Title: "leaving the enclave takes much of the time",
		Signals: []engine.Signal{teeSignal, cpuSignal, userSignal, transitionsSignal, ocallsSignal, idleSignal},
		Judge:   judgeOCALLBound,
		NotWhen: []string{
			"the exits are those of the start: loading a program makes about 200, and thousands with many libraries",
			"the processor or its microcode makes crossings cheaper or dearer than the range that is assumed",
			"the workload waits for its clients: fewer exits then save CPU time and bring no throughput",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Effects of system calls / ocalls; Exitless feature: Redis 43,010 to 68,119 requests/s",
			"Weichbrodt et al., sgx-perf, Middleware 2018: batching, merging and moving of calls",
			cost.OCALL.Source, cost.Exitless.Source,
		},
	}
}

func judgeOCALLBound(w engine.Workload) *engine.Verdict {
	p := placeOf(w)
	cores, busy := cpuOf(w)
	exits, counted := exitsOf(w)
	if !p.enclave() || !busy || !counted {
		return nil
	}
	low, high := shares(w, w.OCALL, exits, cores)
	bound := 1.0
	if user, measured := w.Value(userSignal); measured && !w.OCALLMeasured() {
		bound = user / cores // EENTER and EEXIT are executed in user mode; what was measured may be more than they
	}
	high = min(high, bound)
	if middle(min(low, high), high) < ocallShare {
		return nil
	}
	names := w.By(ocallsSignal, "ocall")
	top, called := "", ""
	for name := range names {
		top = largest(names, append([]string{name}, top)...)
	}
	evidence, confidence := []string{transitionsSignal.With("kind", "eexit"), cpuSignal.Name, userSignal.Name}, analysis.Likely
	assumptions := []string{
		w.OCALL.Assumption(), cost.Exitless.Assumption(), w.Clock.Assumption(), cpuBound,
		"all exits can be avoided, by batching or by threads outside; what the host does for each call stays",
	}
	if w.OCALLMeasured() {
		evidence, confidence = append(evidence, engine.EvidenceOCALL), analysis.Measured
	} else {
		assumptions = append(assumptions, "no more is saved than the time in user mode")
	}
	if top != "" && names[top] > 0 {
		called = fmt.Sprintf(", most often for %s (%s/s)", top, figure(names[top]))
		evidence = append(evidence, ocallsSignal.With("ocall", top), ocallsSignal.Name)
	}
	// What is saved is less than what an OCALL costs: the call is made in another way, or with others at once.
	handLow, handHigh := shares(w, cost.Exitless, exits, cores)
	return &engine.Verdict{
		Confidence: confidence,
		Cause: fmt.Sprintf("the enclave is left %s times/s%s, which takes %s of the workload's CPU time",
			figure(exits), called, between(low, high)),
		Evidence: evidence,
		Advice: p.advice(
			tip{"", "make fewer calls: pipeline requests, batch reads and writes, use larger buffers"},
			tip{"Gramine", "find out what calls: sgx.profile.mode = \"ocall_inner\" with sgx.profile.with_stack = true, in a debug build"},
			tip{"Gramine", exitlessTip(w)},
			tip{"Gramine", "libos.check_invalid_pointers = false saves a little at each call, where the application passes none"},
			tip{"Intel SDK, Open Enclave", "merge calls that follow each other into one, and mark short frequent ones transition_using_threads (switchless)"},
			tip{"Intel SDK, Open Enclave", "move what an OCALL does in less than 10 us into the enclave"},
			tip{"occlum", "keep files in the enclave's own file system, and batch socket calls"},
			tip{"ego", "buffer writes to sockets and files: each call of the Go runtime that reaches the host leaves the enclave"},
		),
		Gain: analysis.Amdahl(max(low-handHigh, 0), min(high-handLow, bound), assumptions...),
	}
}

// exitlessTip is worth saying only where there is a CPU for the threads outside.
func exitlessTip(w engine.Workload) string {
	idle, measured := w.Value(idleSignal)
	if !measured || idle < 1 {
		return ""
	}
	return fmt.Sprintf("%s CPUs are idle: sgx.insecure__rpc_thread_num = sgx.max_threads lets threads outside make the calls (Exitless; not for production)", figure(idle))
}
