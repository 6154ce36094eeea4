// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// OCALLBound names the rule of this file.
const OCALLBound = "ocall-bound"

// ocallShare is the least share of the CPU time that crossings take, at the middle of their cost. Proposed.
const ocallShare = 0.10

// ocallCost can be replaced in the configuration.
var ocallCost = engine.Threshold{Name: "share", Default: ocallShare, Unit: "ratio", Help: "minimum share of the CPU time that crossings take"}

func ocallBound() engine.Rule {
	return engine.Rule{
		Name: OCALLBound, Title: "enclave exits take much of the time",
		Code:       codelink.OCALLs,
		Threads:    analysis.ThreadCPU,
		Thresholds: []engine.Threshold{ocallCost},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, userSignal, transitionsSignal, ocallsSignal, idleSignal,
			loadedSignal, machineLoadedSignal, enclaveWorkloadsSignal, stallSignal,
		},
		Judge: judgeOCALLBound,
		NotWhen: []string{
			"the program has just started: loading makes about 200 exits, and thousands with many libraries",
			"the cost of a crossing on this processor or microcode is outside the assumed range",
			"the throughput is limited by something that is not measured, such as the clients or the network",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Effects of system calls / ocalls; Exitless feature: Redis 43,010 to 68,119 requests/s",
			"Weichbrodt et al., sgx-perf, Middleware 2018: batching, merging and moving of calls",
			cost.OCALL.Source, cost.Exitless.Source,
		},
	}
}

func judgeOCALLBound(w engine.Workload) *engine.Verdict {
	e := environmentOf(w)
	cores, busy := cpuOf(w)
	exits, counted := exitsOf(w)
	if !e.enclave() || !busy || !counted {
		return nil
	}
	low, high := shares(w, w.OCALL, exits, cores)
	bound := 1.0
	if user, measured := w.Value(userSignal); measured && !w.OCALLMeasured() {
		bound = user / cores // EENTER and EEXIT run in user mode; a measured cost may include more
	}
	low, high = capped(low, high, bound)
	rest, paged := besidesPaging(w, cores)
	if low, high = capped(low*cores/rest, high*cores/rest, 1); middle(low, high) < w.LeastFor(ocallCost) {
		return nil
	}
	names := w.By(ocallsSignal, "ocall")
	top, called := topOf(names), ""
	evidence, confidence := []string{transitionsSignal.With("kind", "eexit"), cpuSignal.Name, userSignal.Name}, analysis.Likely
	assumptions := []string{
		w.OCALL.Assumption(), cost.Exitless.Assumption(), w.Clock.Assumption(),
		"batching or threads outside can avoid all exits; the host's work for each call remains",
	}
	if w.OCALLMeasured() {
		evidence, confidence = append(evidence, engine.EvidenceOCALL), analysis.Measured
	} else {
		assumptions = append(assumptions, "at most the time in user mode is saved")
	}
	if top != "" && names[top] > 0 {
		called = fmt.Sprintf(", most often for %s (%s/s)", top, figure(names[top]))
		evidence = append(evidence, ocallsSignal.With("ocall", top), ocallsSignal.Name)
	}
	// The gain is less than the cost of an OCALL, because the call is still made in another way or together with
	// others.
	least, most := difference(w, w.OCALL, cost.Exitless, exits)
	least, most = capped(least, most, bound*cores)
	v := &engine.Verdict{
		Confidence: confidence,
		Cause: fmt.Sprintf("the workload leaves the enclave %s times/s%s, which takes %s of its CPU time%s",
			figure(exits), called, between(low, high), ofTheRest(paged)),
		Evidence: evidence,
		Advice: e.advice(
			tip{"", "make fewer calls: pipeline requests, batch reads and writes, use larger buffers"},
			tip{"Gramine", "find the callers: sgx.profile.mode = \"ocall_inner\" with sgx.profile.with_stack = true, in a debug build"},
			tip{"Gramine", exitlessTip(w)},
			tip{"Gramine", "libos.check_invalid_pointers = false saves a little at each call, if the application passes no invalid pointers"},
			tip{"Intel SDK, Open Enclave", "merge consecutive calls into one, and mark short frequent calls transition_using_threads (switchless)"},
			tip{"Intel SDK, Open Enclave", "move the work of OCALLs that take less than 10 us into the enclave"},
			tip{"occlum", "keep files in the enclave's own file system, and batch socket calls"},
			tip{"ego", "buffer writes to sockets and files: each call of the Go runtime to the host leaves the enclave"},
		),
	}
	v.Stage, v.Needs = engine.Symptom, w.LeastFor(ocallCost)/middle(low, high)
	v.Draws(engine.Exits, exits, 1, 1)
	v.Saves(w, least, most, assumptions...)
	return v
}

// exitlessTip is empty unless a CPU is idle for the threads outside.
func exitlessTip(w engine.Workload) string {
	idle, measured := w.Value(idleSignal)
	if !measured || idle < 1 {
		return ""
	}
	return fmt.Sprintf("%s CPUs are idle: with sgx.insecure__rpc_thread_num = sgx.max_threads, threads outside make the calls (Exitless; not for production)", figure(idle))
}
