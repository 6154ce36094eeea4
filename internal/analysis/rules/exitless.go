// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
	"github.com/teescope/teescope/internal/lib/teelabel"
	"github.com/teescope/teescope/internal/lib/text"
)

// Exitless names the rule of this file.
const Exitless = "exitless"

const (
	// exitlessWorth is the least share of the CPU time that exits must take, at the lowest documented cost, to justify
	// a core for Exitless. Proposed: 10 % of a core.
	exitlessWorth = 0.10
	// exitlessFewBusy is the largest number of busy threads, in cores, for which Exitless is recommended. Gramine
	// documents it for single-threaded applications (Exitless feature); the second core is proposed.
	exitlessFewBusy = 2
	// exitlessOn is the least number of system calls per exit that shows that threads outside make the calls. Proposed:
	// each OCALL makes about one system call (Gramine, Effects of system calls).
	exitlessOn = 5
	// exitlessCalls is the least rate of system calls that shows whether Exitless is on. Proposed.
	exitlessCalls = 1000
	// sleepsPerCall is the least share of calls after which a thread outside went to sleep. Proposed.
	sleepsPerCall = 0.5
	// spinSeconds is the CPU time that a thread outside spins before it sleeps: 10,000 iterations (SPIN_ATTEMPTS_MAX in
	// Gramine's host_ocalls.c) of at least 9 ns, a PAUSE of 43 cycles at 5 GHz. Documented; this is the shortest known
	// PAUSE.
	spinSeconds = 10_000 * 9e-9
)

// Signals of this rule alone.
var (
	workCallsSignal = engine.Signal{
		Name: "calls", Query: perSecond(`teescope_syscalls_total{syscall!~"nanosleep|clock_nanosleep|sched_yield"}`), Unit: "1/s",
		Help: "system calls except those that only wait",
	}
	sleepsSignal = engine.Signal{
		Name: "sleeps", Query: perSecond(`teescope_syscalls_total{syscall="nanosleep"}`), Unit: "1/s", Help: "sleeps of threads that wait for calls to make",
	}
)

// exitlessCost can be replaced in the configuration.
var exitlessCost = engine.Threshold{Name: "share", Default: exitlessWorth, Unit: "ratio", Help: "minimum share of the CPU time that exits take"}

func exitless() engine.Rule {
	return engine.Rule{
		Name: Exitless, Title: "Exitless system calls would help, or use cores without benefit",
		Code:       codelink.OCALLs,
		Threads:    analysis.ThreadCPU,
		Thresholds: []engine.Threshold{exitlessCost},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, exitsSignal, waitSignal, coresSignal, idleSignal, userSignal,
			workCallsSignal, sleepsSignal,
		},
		Judge: judgeExitless,
		NotWhen: []string{
			"the host's CPUs are reserved for others: Exitless keeps one more core busy for each enclave thread",
			"the deployment must be secure: Gramine marks the option as insecure",
			"the calls block for long: the thread outside waits as long as the enclave's thread would",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Exitless feature: Redis 43,010 to 68,119 requests/s",
			"Gramine, pal/src/host/linux-sgx/host_ocalls.c, rpc_thread_loop",
			cost.OCALL.Source, cost.Exitless.Source,
		},
	}
}

func judgeExitless(w engine.Workload) *engine.Verdict {
	runtime := environmentOf(w).runtime
	v, ok := figures(w, cpuSignal, exitsSignal, workCallsSignal, coresSignal, idleSignal)
	if !ok || runtime != teelabel.GramineSGX || v[cpuSignal] < w.Least(leastBusy) {
		return nil
	}
	on := v[workCallsSignal] >= exitlessCalls && v[workCallsSignal] >= exitlessOn*v[exitsSignal]
	if !on {
		return exitlessMissing(w, v)
	}
	if verdict := exitlessCPUsScarce(w, v); verdict != nil {
		return verdict
	}
	return exitlessIdle(w, v)
}

// exitlessMissing returns a verdict if few threads make many exits while CPUs are idle.
func exitlessMissing(w engine.Workload, v map[engine.Signal]float64) *engine.Verdict {
	user, measured := w.Value(userSignal)
	if !measured || v[cpuSignal] > w.Most(exitlessFewBusy) || v[idleSignal] < w.Least(max(v[cpuSignal], 1)) {
		return nil
	}
	low, high := w.OCALL.CPU(v[exitsSignal], w.Clock)
	if low < w.LeastFor(exitlessCost)*v[cpuSignal] {
		return nil
	}
	// Exits run in user mode, so no more than that time can be saved.
	least, most := difference(w, w.OCALL, cost.Exitless, v[exitsSignal])
	least, most = capped(least, most, user)
	evidence, confidence := []string{exitsSignal.Name, cpuSignal.Name, userSignal.Name, idleSignal.Name, coresSignal.Name, workCallsSignal.Name}, analysis.Likely
	if w.OCALLMeasured() {
		evidence, confidence = append(evidence, engine.EvidenceOCALL), analysis.Measured
	}
	verdict := &engine.Verdict{
		Confidence: confidence,
		Cause: fmt.Sprintf("%s exits/s take %s of the CPU time, and threads on the %s idle CPUs could make the calls without an exit",
			figure(v[exitsSignal]), between(low/v[cpuSignal], min(high, user)/v[cpuSignal]), figure(v[idleSignal])),
		Evidence: evidence,
		Advice: []string{
			"set sgx.insecure__rpc_thread_num (sgx.rpc_thread_num before Gramine 1.3) to sgx.max_threads: threads outside then make the calls (insecure: not for production)",
			"pin enclave threads and threads outside to different CPUs (taskset, isolcpus)",
			"or make fewer calls: batch reads and writes, pipeline requests",
		},
		Supersedes: []string{OCALLBound},
		Stage:      engine.Workaround, Needs: w.LeastFor(exitlessCost) * v[cpuSignal] / low,
	}
	verdict.Draws(engine.Exits, v[exitsSignal], 1, 1)
	verdict.Saves(w, least, most, w.OCALL.Assumption(), cost.Exitless.Assumption(), w.Clock.Assumption(),
		"the CPU time is that of the threads in the enclave: each thread outside takes an idle CPU",
		"at most the time in user mode is saved")
	return verdict
}

// exitlessCPUsScarce returns a verdict if the threads compete for the CPUs.
func exitlessCPUsScarce(w engine.Workload, v map[engine.Signal]float64) *engine.Verdict {
	wait, measured := w.Value(waitSignal)
	if !measured || v[idleSignal] > w.Most(engine.ScarceIdle)*v[coresSignal] || wait < w.Least(engine.ScarceWait)*v[cpuSignal] {
		return nil
	}
	saved, _ := w.OCALL.CPU(v[workCallsSignal], w.Clock)
	if saved >= wait { // an exit for each call would cost more than the waiting
		return nil
	}
	return &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s system calls/s with %s exits/s show that threads outside make them; %s threads of the workload wait for a CPU while %s of the machine is idle",
			figure(v[workCallsSignal]), figure(v[exitsSignal]), figure(wait), text.Percent(v[idleSignal]/v[coresSignal])),
		Evidence: []string{waitSignal.Name, idleSignal.Name, coresSignal.Name, workCallsSignal.Name, exitsSignal.Name, cpuSignal.Name},
		Advice: []string{
			"set sgx.insecure__rpc_thread_num to 0: this frees the CPUs that the threads outside use",
			"or give the workload one more CPU for each thread outside, and pin enclave threads and threads outside to different CPUs",
		},
		Gain: estimate.Amdahl("the CPUs of the machine", 0, (wait-saved)/(v[cpuSignal]+wait),
			"at best no thread waits for a CPU, and each call costs an OCALL again", w.OCALL.Assumption(), w.Clock.Assumption()),
		Supersedes: []string{ContextSwitchStorm, ThreadsOverCapacity},
	}
}

// exitlessIdle returns a verdict if threads outside fall asleep after nearly every call, which means that they spin
// without finding one.
func exitlessIdle(w engine.Workload, v map[engine.Signal]float64) *engine.Verdict {
	sleeps, measured := w.Value(sleepsSignal)
	if !measured || sleeps < w.Least(sleepsPerCall)*v[workCallsSignal] {
		return nil
	}
	burnt := min(v[workCallsSignal]*spinSeconds, v[cpuSignal])
	_, saved := w.OCALL.CPU(v[workCallsSignal], w.Clock)
	if burnt <= saved {
		return nil
	}
	return &engine.Verdict{
		Severity: analysis.Info, Confidence: analysis.Possible,
		Cause: fmt.Sprintf("the threads outside sleep %s times/s for %s calls/s: they spin on at least %s cores and save at most %s",
			figure(sleeps), figure(v[workCallsSignal]), figure(burnt), figure(saved)),
		Evidence: []string{sleepsSignal.Name, workCallsSignal.Name, exitsSignal.Name, cpuSignal.Name},
		Advice:   []string{"set sgx.insecure__rpc_thread_num to 0, or to fewer threads: at this load Exitless costs more CPU time than it saves"},
	}
}
