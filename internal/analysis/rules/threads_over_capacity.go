// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/teelabel"
)

// ThreadsOverCapacity names the rule of this file.
const ThreadsOverCapacity = "threads-over-capacity"

const (
	// TCSNear is the share of thread control structures in use from which the limit is near. Proposed.
	TCSNear = 0.8
	// ownShare is the least share of the workload in the machine's busy CPU time, for its threads to wait for each
	// other. Proposed.
	ownShare = 0.5
	// waitingThreads is the least number of threads that wait for a CPU on average. Proposed.
	waitingThreads = 0.5
)

// Signals of this rule alone.
var (
	tcsSignal = engine.Signal{
		Name: "tcs", Unit: "threads", Help: "threads that can be in the enclaves at once (TCS)",
		Query: "sum by (workload, instance) (" + ofEnclave("sgx_enclave_threads", "") + ")",
	}
	involuntarySignal = engine.Signal{
		Name: "involuntary", Query: perSecond(`teescope_context_switches_total{kind="involuntary"}`), Unit: "1/s",
		Help: "threads that were preempted",
	}
)

// tcsShare can be replaced in the configuration.
var tcsShare = engine.Threshold{Name: "threads", Default: TCSNear, Unit: "ratio", Help: "share of thread control structures in use"}

func threadsOverCapacity() engine.Rule {
	return engine.Rule{
		Name: ThreadsOverCapacity, Title: "more threads than the enclave or the machine can run",
		Code:        codelink.Waits,
		Waits:       codelink.ForCPU,
		Threads:     analysis.ThreadQueue,
		CompetesFor: analysis.SharedCPU,
		Thresholds:  []engine.Threshold{tcsShare},
		Signals: []engine.Signal{
			teeSignal, threadsSignal, cpuSignal, waitSignal, coresSignal, idleSignal, exitsSignal,
			tcsSignal, involuntarySignal, allCallsSignal,
		},
		Judge: judgeThreadsOverCapacity,
		NotWhen: []string{
			"other workloads use the CPUs: the number of threads is then not the cause",
			"most of the threads stay outside the enclave, as those of Exitless do",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis, Other considerations (sgx.max_threads), Choice of machine",
			"users' report gramine#853: MariaDB collapses with many threads",
			cost.Switch.Source, cost.AEX.Source,
		},
	}
}

func judgeThreadsOverCapacity(w engine.Workload) *engine.Verdict {
	if !environmentOf(w).protected() {
		return nil
	}
	if verdict := overTCS(w); verdict != nil && verdict.Severity != analysis.Info {
		return verdict
	}
	if verdict := overCores(w); verdict != nil {
		return verdict
	}
	return overTCS(w)
}

// overTCS compares threads with the thread control structures of the enclave. In Gramine each thread of the application
// is a thread of the process. Other runtimes have threads that never enter.
func overTCS(w engine.Workload) *engine.Verdict {
	runtime := environmentOf(w).runtime
	v, ok := figures(w, threadsSignal, tcsSignal, cpuSignal)
	if !ok || runtime != teelabel.GramineSGX || v[tcsSignal] <= 0 || v[threadsSignal] < w.LeastFor(tcsShare)*v[tcsSignal] {
		return nil
	}
	calls, counted := w.Value(allCallsSignal)
	exits, known := w.Value(exitsSignal)
	if counted && known && calls >= exitlessCalls && calls >= exitlessOn*exits {
		return nil // the threads of Exitless never enter the enclave
	}
	verdict := &engine.Verdict{
		Severity: analysis.Info, Confidence: analysis.Possible,
		Cause:    fmt.Sprintf("the workload has %s threads, and the enclave has room for %s (TCS)", figure(v[threadsSignal]), figure(v[tcsSignal])),
		Evidence: []string{threadsSignal.Name, tcsSignal.Name},
		Advice: []string{
			"raise sgx.max_threads (sgx.thread_num before Gramine 1.5): no more threads than that can be created",
			"or start fewer threads: set loader.env.OMP_NUM_THREADS and MKL_NUM_THREADS, which are not inherited from the host",
		},
	}
	return verdict
}

// overCores returns a verdict if threads wait for CPUs that the workload itself keeps busy.
func overCores(w engine.Workload) *engine.Verdict {
	v, ok := figures(w, threadsSignal, cpuSignal, waitSignal, coresSignal, idleSignal, involuntarySignal)
	if !ok || v[cpuSignal] < w.Least(leastBusy) || v[threadsSignal] <= v[coresSignal] || v[idleSignal] > w.Most(engine.ScarceIdle)*v[coresSignal] {
		return nil
	}
	if v[waitSignal] < w.Least(engine.ScarceWait)*v[cpuSignal] || v[waitSignal] < w.Least(waitingThreads) || v[cpuSignal] < w.Least(ownShare)*(v[coresSignal]-v[idleSignal]) {
		return nil
	}
	low, high := cost.Switch.CPU(v[involuntarySignal], w.Clock)
	_, aex := cost.AEX.CPU(v[involuntarySignal], w.Clock)
	high += aex
	where := ""
	if environmentOf(w).enclave() {
		where = " inside the enclave"
	}
	verdict := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s threads share %s CPUs: %s of them wait for a CPU on average, and threads are interrupted%s %s times/s",
			figure(v[threadsSignal]), figure(v[coresSignal]), figure(v[waitSignal]), where, figure(v[involuntarySignal])),
		Evidence: []string{waitSignal.Name, threadsSignal.Name, coresSignal.Name, involuntarySignal.Name, cpuSignal.Name, idleSignal.Name},
		Advice: []string{
			"run as many busy threads as there are CPUs, or give the workload more CPUs",
			"pin the threads, so that an interrupted thread returns to warm caches",
		},
		Supersedes: []string{ContextSwitchStorm},
	}
	if !environmentOf(w).enclave() {
		verdict.Severity = analysis.Info // a switch costs there what it costs anywhere
		return verdict
	}
	verdict.Draws(engine.AsyncExits, v[involuntarySignal], 0, aex/high)
	low, high = capped(low, high, v[cpuSignal])
	waiting, runs := v[waitSignal], fmt.Sprintf("at most no thread waits for a CPU, as with a CPU for each: %s threads run and %s wait",
		figure(v[cpuSignal]), figure(v[waitSignal]))
	if w.Load.Confined() {
		waiting, runs = 0, "a gain from more CPUs is not counted: the workload has a CPU quota"
	}
	verdict.SavesAndRuns(w, low, high, waiting, "", cost.Switch.Assumption(), cost.AEX.Assumption(), w.Clock.Assumption(),
		"fewer threads save the switches only, because the CPUs stay busy", runs)
	if waiting > 0 && analysis.SeverityOf(verdict.Gain, verdict.Saving, v[cpuSignal]) == analysis.Info {
		verdict.Severity = analysis.Low // the wait is measured, and what it costs is not
	}
	return verdict
}
