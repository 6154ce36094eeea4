// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// Exitless names the rule of this file.
const Exitless = "exitless"

const (
	// exitlessWorth is the least share of the CPU time that leaving the enclave must take, at the lowest documented
	// cost, for Exitless to be worth a core. Proposed (rule 1 of the advisor: 10 % of a core).
	exitlessWorth = 0.10
	// exitlessFewBusy is the most busy threads, in cores, that Exitless is recommended for: it is meant for
	// single-threaded applications. Documented (Gramine, Exitless feature); the second core is proposed.
	exitlessFewBusy = 2
	// exitlessOn is how many times more system calls than exits there are when others make the calls. Proposed: each
	// OCALL makes about one system call (Gramine, Effects of system calls).
	exitlessOn = 5
	// exitlessCalls is the least rate of system calls that tells whether Exitless is on. Proposed.
	exitlessCalls = 1000
	// crowdedWait is the least time waited for a CPU, against that used, of threads that stand in each other's way.
	// Proposed.
	crowdedWait = 0.25
	// crowdedIdle is the most of the machine's CPUs that has nothing to do when they are scarce. Proposed.
	crowdedIdle = 0.10
	// sleepsPerCall is the least share of calls after which a thread outside went to sleep. Proposed.
	sleepsPerCall = 0.5
	// spinSeconds is what a thread outside burns before it sleeps: 10,000 turns (SPIN_ATTEMPTS_MAX in Gramine's
	// host_ocalls.c) of at least 9 ns, a PAUSE of 43 cycles at 5 GHz. Documented; the PAUSE is the shortest known.
	spinSeconds = 10_000 * 9e-9
)

// Signals of this rule alone.
var (
	workCallsSignal = engine.Signal{
		Name: "calls", Query: perSecond(`teescope_syscalls_total{syscall!~"nanosleep|clock_nanosleep|sched_yield"}`), Unit: "1/s",
		Help: "system calls but those that only wait",
	}
	sleepsSignal = engine.Signal{
		Name: "sleeps", Query: perSecond(`teescope_syscalls_total{syscall="nanosleep"}`), Unit: "1/s", Help: "naps of threads that wait for calls to make",
	}
)

func exitless() engine.Rule {
	return engine.Rule{
		Name: Exitless, Title: "Exitless system calls missing where they pay, or burning cores without need",
		Signals: []engine.Signal{
			teeSignal, cpuSignal, exitsSignal, waitSignal, coresSignal, idleSignal, userSignal,
			workCallsSignal, sleepsSignal,
		},
		Judge: judgeExitless,
		NotWhen: []string{
			"the host's CPUs are promised to others: a thread outside for each enclave thread burns a core",
			"the threads outside may see and change calls in production: in Gramine the option is called insecure",
			"calls that block for long, which the thread outside waits out as the enclave's thread would",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Exitless feature: Redis 43,010 to 68,119 requests/s",
			"Gramine, pal/src/host/linux-sgx/host_ocalls.c, rpc_thread_loop",
			cost.OCALL.Source, cost.Exitless.Source,
		},
	}
}

func judgeExitless(w engine.Workload) *engine.Verdict {
	runtime := placeOf(w).runtime
	v, ok := figures(w, cpuSignal, exitsSignal, workCallsSignal, coresSignal, idleSignal)
	if !ok || runtime != "gramine-sgx" || v[cpuSignal] < leastBusy {
		return nil
	}
	on := v[workCallsSignal] >= exitlessCalls && v[workCallsSignal] >= exitlessOn*v[exitsSignal]
	if !on {
		return exitlessMissing(w, v)
	}
	if verdict := exitlessCrowded(w, v); verdict != nil {
		return verdict
	}
	return exitlessIdle(w, v)
}

// exitlessMissing wants many exits of few threads, and CPUs that are free.
func exitlessMissing(w engine.Workload, v map[engine.Signal]float64) *engine.Verdict {
	user, measured := w.Value(userSignal)
	if !measured || v[cpuSignal] > exitlessFewBusy || v[idleSignal] < v[cpuSignal] || v[idleSignal] < 1 {
		return nil
	}
	low, high := w.OCALL.CPU(v[exitsSignal], w.Clock)
	if low < exitlessWorth*v[cpuSignal] {
		return nil
	}
	handLow, handHigh := cost.Exitless.CPU(v[exitsSignal], w.Clock)
	// The exits are in user mode: no more than that can be saved.
	least, most := max(low-handHigh, 0), min(high-handLow, user)
	evidence, confidence := []string{exitsSignal.Name, cpuSignal.Name, userSignal.Name, idleSignal.Name, coresSignal.Name, workCallsSignal.Name}, analysis.Likely
	if w.OCALLMeasured() {
		evidence, confidence = append(evidence, engine.EvidenceOCALL), analysis.Measured
	}
	return &engine.Verdict{
		Confidence: confidence,
		Cause: fmt.Sprintf("%s exits/s take %s to %s of the CPU time, and %s CPUs are idle that could make the calls without an exit",
			figure(v[exitsSignal]), percent(low/v[cpuSignal]), percent(min(high, user)/v[cpuSignal]), figure(v[idleSignal])),
		Evidence: evidence,
		Advice: []string{
			"set sgx.insecure__rpc_thread_num (sgx.rpc_thread_num before Gramine 1.3) to sgx.max_threads: threads outside then make the calls",
			"pin enclave threads and threads outside to different CPUs, with taskset or isolcpus",
			"or make fewer calls: batch reads and writes, pipeline requests",
		},
		Gain: analysis.Amdahl(least/v[cpuSignal], most/v[cpuSignal],
			w.OCALL.Assumption(), cost.Exitless.Assumption(), w.Clock.Assumption(), cpuBound,
			"there is a free CPU for each thread outside", "no more is saved than the time in user mode"),
		Supersedes: []string{OCALLBound},
	}
}

// exitlessCrowded wants threads that wait for each other's CPUs.
func exitlessCrowded(w engine.Workload, v map[engine.Signal]float64) *engine.Verdict {
	wait, measured := w.Value(waitSignal)
	if !measured || v[idleSignal] > crowdedIdle*v[coresSignal] || wait < crowdedWait*v[cpuSignal] {
		return nil
	}
	saved, _ := w.OCALL.CPU(v[workCallsSignal], w.Clock)
	if saved >= wait { // leaving the enclave for each call would cost more than the crowd does
		return nil
	}
	return &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s system calls/s are made with %s exits/s, so threads outside make them, and %s threads of the workload wait for a CPU while %s of the machine is idle",
			figure(v[workCallsSignal]), figure(v[exitsSignal]), figure(wait), percent(v[idleSignal]/v[coresSignal])),
		Evidence: []string{waitSignal.Name, idleSignal.Name, coresSignal.Name, workCallsSignal.Name, exitsSignal.Name, cpuSignal.Name},
		Advice: []string{
			"set sgx.insecure__rpc_thread_num to 0: enclave threads get back the CPUs that the threads outside burn",
			"or give the workload as many more CPUs as it has threads outside, and pin them apart",
		},
		Gain: analysis.Amdahl(0, (wait-saved)/(v[cpuSignal]+wait),
			"at best nobody waits for a CPU any more, and each call costs an OCALL again", w.OCALL.Assumption(), w.Clock.Assumption(), cpuBound),
		Supersedes: []string{ContextSwitchStorm, ThreadsOverCapacity},
	}
}

// exitlessIdle wants threads outside that fall asleep after nearly each call: they have spun in vain before.
func exitlessIdle(w engine.Workload, v map[engine.Signal]float64) *engine.Verdict {
	sleeps, measured := w.Value(sleepsSignal)
	if !measured || sleeps < sleepsPerCall*v[workCallsSignal] {
		return nil
	}
	burnt := min(v[workCallsSignal]*spinSeconds, v[cpuSignal])
	_, saved := w.OCALL.CPU(v[workCallsSignal], w.Clock)
	if burnt <= saved {
		return nil
	}
	return &engine.Verdict{
		Severity: analysis.Info, Confidence: analysis.Possible,
		Cause: fmt.Sprintf("the threads outside sleep %s times/s for %s calls/s: they burn at least %s cores in spinning and save at most %s",
			figure(sleeps), figure(v[workCallsSignal]), figure(burnt), figure(saved)),
		Evidence: []string{sleepsSignal.Name, workCallsSignal.Name, exitsSignal.Name, cpuSignal.Name},
		Advice:   []string{"set sgx.insecure__rpc_thread_num to 0, or to fewer threads: it costs CPU time and saves little at this load"},
	}
}
