// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/text"
)

// LockContention names the rule of this file.
const LockContention = "lock-contention"

const (
	// futexPerSecond is the least rate of futex calls. Proposed.
	futexPerSecond = 1000
	// futexShare is the least share of futex among the system calls. Proposed: about half of the 63 % of the time that
	// users saw in gramine#910.
	futexShare = 0.30
	// futexMost is the share of futex among the system calls above which most exits from the enclave are for locks. By
	// definition.
	futexMost = 0.50
	// futexWaits is the least share of futex calls that put a thread to sleep. Proposed: a free lock causes none, and
	// with a contended lock half of the calls wait and half wake.
	futexWaits = 0.10
	// futexPerThread is the number of futex calls that the start and end of a thread make. Measured: about 6 in
	// gramine-direct (strace).
	futexPerThread = 6
	// lockWorth is the least share of the CPU time in an enclave, at the middle of the range of the cost. Proposed.
	lockWorth = 0.05
	// fewWaits is the largest number of calls that wait for clients, in parts of the futex calls, for locks to be what
	// threads wait for. Proposed.
	fewWaits = 0.10
	// lockThreads is the least number of threads that can contend.
	lockThreads = 2
)

// Signals of this rule alone.
var (
	futexSignal = engine.Signal{
		Name: "futex", Query: perSecond(`teescope_syscalls_total{syscall="futex"}`), Unit: "1/s", Help: "futex calls: they wait for a lock or wake a waiting thread",
	}
	waitsSignal = engine.Signal{
		Name: "waits", Query: perSecond(`teescope_context_switches_total{kind="voluntary"}`), Unit: "1/s",
		Help: "threads that gave up the CPU to wait",
	}
	futexTimeSignal = engine.Signal{
		Name: "futex_time", Query: perSecond(`teescope_syscall_seconds_total{syscall="futex"}`), Unit: "threads",
		Help: "threads in futex on average, including threads that wait for work (--syscalls.time)",
	}
)

// Thresholds that the configuration can replace.
var (
	lockCalls = engine.Threshold{Name: "calls", Default: futexPerSecond, Unit: "1/s", Help: "minimum rate of futex calls"}
	lockShare = engine.Threshold{Name: "share", Default: lockWorth, Unit: "ratio", Help: "minimum share of the CPU time in an enclave"}
)

func lockContention() engine.Rule {
	return engine.Rule{
		Name: LockContention, Title: "threads wait for each other's locks",
		Code:       codelink.Waits,
		Waits:      codelink.ForLock,
		Threads:    analysis.ThreadSleeps,
		Thresholds: []engine.Threshold{lockCalls, lockShare},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, threadsSignal, exitsSignal, futexSignal, allCallsSignal, waitsSignal,
			threadStartsSignal, futexTimeSignal, idleSignal, ownNetCallsSignal,
		},
		Judge: judgeLockContention,
		NotWhen: []string{
			"threads hand work to each other through condition variables: they make as many calls without contention",
			"the runtime parks idle threads by itself, as those of Go and Java do",
		},
		Sources: []string{
			"users' reports gramine#910 (63 % in futex), gramine#853",
			"TEEMon, Middleware 2020, 6.4: futex dominates reads and writes",
			"futex(7): the call is made for a lock in contention only",
			cost.Switch.Source, cost.OCALL.Source,
		},
	}
}

func judgeLockContention(w engine.Workload) *engine.Verdict {
	v, ok := figures(w, cpuSignal, threadsSignal, futexSignal, allCallsSignal, waitsSignal)
	if !ok || v[cpuSignal] < w.Least(leastBusy) || v[threadsSignal] < lockThreads || v[allCallsSignal] <= 0 {
		return nil
	}
	starts, _ := w.Value(threadStartsSignal)
	v[futexSignal] -= futexPerThread * starts // these calls wait for threads, not for locks
	if v[futexSignal] < w.LeastFor(lockCalls) || v[futexSignal] < w.Least(futexShare)*v[allCallsSignal] || v[waitsSignal] < w.Least(futexWaits)*v[futexSignal] {
		return nil
	}
	verdict := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s futex calls/s are %s of the system calls of %s threads, and threads go to sleep %s times/s",
			figure(v[futexSignal]), text.Percent(v[futexSignal]/v[allCallsSignal]), figure(v[threadsSignal]), figure(v[waitsSignal])),
		Evidence: []string{futexSignal.Name, allCallsSignal.Name, waitsSignal.Name, threadsSignal.Name, cpuSignal.Name, futexTimeSignal.Name, idleSignal.Name},
		Advice: []string{
			"hold the lock for a shorter time, or divide it: one lock for each shard, connection or thread",
			"run fewer threads: more threads than CPUs only queue for the lock",
			"find the lock: perf lock contention, or perf trace -s on the process",
		},
		Supersedes: []string{ContextSwitchStorm, NeedlessSyscalls},
	}
	if v[futexSignal] >= futexMost*v[allCallsSignal] {
		verdict.Supersedes = append(verdict.Supersedes, OCALLBound) // most exits from the enclave are for locks
	}
	if time, timed := w.Value(futexTimeSignal); timed {
		verdict.Cause += fmt.Sprintf("; %s threads are in futex on average", figure(time))
	}
	if !environmentOf(w).enclave() {
		verdict.Severity = analysis.Info
		return verdict
	}
	// The estimate saves the cost of each call and each sleep. The time in futex bounds what could run in parallel.
	low, high := cost.Switch.CPU(min(v[waitsSignal], v[futexSignal]), w.Clock)
	outLow, outHigh := w.OCALL.CPU(v[futexSignal], w.Clock)
	if _, counted := w.Value(exitsSignal); !counted {
		outLow = 0 // the calls may be made without an exit
	}
	verdict.Draws(engine.Exits, v[futexSignal], outLow/(low+outLow), outHigh/(high+outHigh))
	low, high = capped(low+outLow, high+outHigh, v[cpuSignal])
	if middle(low, high) < w.LeastFor(lockShare)*v[cpuSignal] {
		return nil
	}
	waiting, parallel := parallelBound(w, v[threadsSignal]-v[cpuSignal])
	verdict.SavesAndRuns(w, low, high, waiting, serialLimit(w, v), cost.Switch.Assumption(), w.OCALL.Assumption(), w.Clock.Assumption(),
		"each call leaves the enclave, and each call and sleep is saved", parallel)
	return verdict
}

// parallelBound returns how many more threads could run without the locks, and that as an assumption. It is at most the
// threads that are in futex, the idle CPUs and the threads that do not run. Without the time in futex it is not known. Idle
// CPUs that the workload may not use run none.
func parallelBound(w engine.Workload, sleeping float64) (threads float64, assumption string) {
	time, timed := w.Value(futexTimeSignal)
	if !timed {
		return 0, "a gain from more parallel work is not counted: the time in futex is not measured (--syscalls.time)"
	}
	if w.Load.Confined() {
		return 0, "a gain from more parallel work is not counted: the workload may not use the idle CPUs"
	}
	threads = min(time, sleeping)
	because := fmt.Sprintf("%s threads are in futex, including those that wait for work", figure(time))
	if idle, measured := w.Value(idleSignal); measured {
		threads = min(threads, idle)
		because += fmt.Sprintf(", and %s CPUs are idle", figure(idle))
	}
	threads = max(0, threads)
	return threads, fmt.Sprintf("at most %s more threads would run without the locks: %s", figure(threads), because)
}

// serialLimit returns what limits the throughput if the locks do, or nothing. Without the time in futex, threads that wait for
// clients in read look the same.
func serialLimit(w engine.Workload, v map[engine.Signal]float64) string {
	clients, _ := w.Value(ownNetCallsSignal) // calls that were never made have no series
	idle, measured := w.Value(idleSignal)
	time, timed := w.Value(futexTimeSignal)
	if !measured || idle < w.Least(1) || !timed || time < w.Least(w.Load.Cores) || !serialised(w, v[futexSignal], v[allCallsSignal], clients) {
		return ""
	}
	return fmt.Sprintf("its locks: its threads run on %s CPUs together while %s are idle", figure(v[cpuSignal]), figure(idle))
}

// serialised reports whether threads that contend for locks show a limit: most calls are for locks, hardly any wait for
// clients, and some thread always runs or waits for a CPU.
func serialised(w engine.Workload, futex, calls, clients float64) bool {
	return futex >= w.Least(futexMost)*calls && clients < w.Most(fewWaits)*futex && w.Load.Cores+orZero(w.Load.Wait) >= w.Least(saturated)
}
