// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"math"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/lib/text"
)

// AEXStorm names the rule of this file.
const AEXStorm = "aex-storm"

const (
	// trapsPerSecond is the least rate of exceptions in an enclave. Proposed. A start of Gramine causes 32 (Gramine,
	// How to read this output).
	trapsPerSecond = 100
	// tickPerCore is the rate of timer interrupts of one busy thread on a kernel with HZ=250. Documented (Gramine, How
	// to read this output).
	tickPerCore = 250
	// aexOverTick is how many times the timer's rate makes a finding. Proposed.
	aexOverTick = 2
	// aexWorth is the least share of the CPU time, at the lowest cost. Proposed: the 1,000 ticks a second of some
	// kernels stay below it.
	aexWorth = 0.01
	// aexOfFaults is the share of asynchronous exits above which page faults explain them. Proposed.
	aexOfFaults = 0.5
)

// costTrap is the cost of an instruction that the runtime emulates: an exit by an exception, an entry and exit for the
// handler, and the return.
var costTrap = cost.Cycles{
	What: "a trapped instruction", Low: 2 * cost.AEX.Low, High: 3 * cost.AEX.High,
	Source: "proposed: an asynchronous exit, a signal, and an entry and exit for the handler (Gramine, Choice of machine)",
}

// Signals of this rule alone.
var (
	aexSignal = engine.Signal{
		Name: "aex", Query: engine.AsyncQuery, Unit: "1/s", Help: "asynchronous exits",
	}
	trapsSignal = engine.Signal{
		Name: "traps", Query: perSecond(`teescope_enclave_signals_total{kind="sync"}`), Unit: "1/s", Help: "exceptions that the runtime handled in the enclave",
	}
	aexCausesSignal = engine.Signal{
		Name: "causes", Query: perSecond("teescope_enclave_aex_total", "cause"), Unit: "1/s", Help: "asynchronous exits by cause",
	}
	aexVarianceSignal = engine.Signal{
		Name: "variance", Query: perSecond("teescope_enclave_aex_variance_total", "cause"), Unit: "1/s", Help: "increase of the variance of asynchronous exits, where they are sampled",
	}
)

// Thresholds that the configuration can replace.
var (
	aexTraps = engine.Threshold{Name: "traps", Default: trapsPerSecond, Unit: "1/s", Help: "minimum rate of exceptions in an enclave"}
	aexTicks = engine.Threshold{Name: "ticks", Default: aexOverTick, Unit: "1", Help: "asynchronous exits for each timer interrupt"}
)

func aexStorm() engine.Rule {
	return engine.Rule{
		Name: AEXStorm, Title: "trapped instructions or interrupts force exits from the enclave",
		Code:       codelink.CPU,
		Threads:    analysis.ThreadCPU,
		Thresholds: []engine.Threshold{aexTraps, aexTicks},
		Signals:    []engine.Signal{teeSignal, cpuSignal, aexSignal, trapsSignal, enclaveFaultsSignal, aexCausesSignal, aexVarianceSignal},
		Judge:      judgeAEXStorm,
		NotWhen: []string{
			"the application has just started: libraries query the processor's features then",
			"the kernel ticks more often than 250 times a second, or the application uses exceptions on purpose",
		},
		Sources: []string{
			"Gramine, Performance tuning and analysis: Enabling SGX stats, Choice of machine (RDTSC, CPUID and SYSCALL)",
			cost.AEX.Source,
		},
	}
}

func judgeAEXStorm(w engine.Workload) *engine.Verdict {
	v, ok := figures(w, cpuSignal, aexSignal)
	if !ok || !environmentOf(w).enclave() || v[cpuSignal] < w.Least(leastBusy) {
		return nil
	}
	if traps, told := w.Value(trapsSignal); told && traps >= w.LeastFor(aexTraps) {
		if verdict := trapped(w, v[cpuSignal], traps); verdict != nil {
			return verdict
		}
	}
	tick := tickPerCore * max(1, v[cpuSignal])
	faults, counted := w.Value(enclaveFaultsSignal)
	if v[aexSignal] < w.LeastFor(aexTicks)*tick || !counted || faults > w.Most(aexOfFaults)*v[aexSignal] {
		return nil // uncounted faults may be the reason
	}
	low, high := cost.AEX.CPU(v[aexSignal]-tick, w.Clock)
	if low < w.Least(aexWorth)*v[cpuSignal] {
		return nil
	}
	verdict := &engine.Verdict{
		Confidence: analysis.Possible,
		Code:       codelink.AEXs, // which do not have exceptions
		Cause: fmt.Sprintf("%s asynchronous exits/s are %s times what a tick of %d Hz causes, and at most %s/s are page faults in enclave memory",
			figure(v[aexSignal]), figure(v[aexSignal]/tick), tickPerCore, figure(faults)),
		Evidence: []string{aexSignal.Name, cpuSignal.Name, enclaveFaultsSignal.Name, trapsSignal.Name},
		Advice: []string{
			"keep interrupts off the enclave's CPUs: pin the workload, move interrupts to other CPUs (/proc/irq/*/smp_affinity), or use isolcpus",
			"disable timer ticks on these CPUs (nohz_full)",
		},
	}
	mainCause(w, faults, verdict)
	low, high = capped(low, high, v[cpuSignal])
	verdict.Stage = engine.Symptom
	verdict.Draws(engine.AsyncExits, v[aexSignal]-tick, 1, 1)
	verdict.Saves(w, low, high, cost.AEX.Assumption(), w.Clock.Assumption(), "exits for the timer remain")
	return verdict
}

// aexCauses are the causes of asynchronous exits that a user can do something about. The tick of a kernel, of at most 1,000 Hz, is
// too rare for a finding, so a timer that is the main cause is one of high resolution, and nohz_full leaves it.
var aexCauses = map[string]struct{ what, advice string }{
	"timer": {
		"timers of the CPU",
		"find what sets timers more often than the kernel ticks, and let it run on other CPUs or less often: perf record -a -g -e timer:hrtimer_start",
	},
	"reschedule": {
		"other CPUs that wake up threads on this one",
		"run fewer threads, or pin them: each wake-up from another CPU interrupts the enclave",
	},
	"device": {
		"interrupts of devices",
		"move interrupts of devices to other CPUs (/proc/irq/*/smp_affinity; irqbalance must leave them there), and pin the workload",
	},
	"outside_fault": {
		"page faults, most of them outside of enclave memory",
		"keep the buffers outside of the enclave, and touch them before they are used (MAP_POPULATE). More EPC does not help",
	},
	"page_fault": {
		"page faults in enclave memory",
		"give the enclave a smaller working set or more EPC, or preheat it (sgx.preheat_enclave)",
	},
}

// mainCause adds the cause of most of the exits to a verdict, if it is known. The advice is then about that cause alone. faults is
// the rate of page faults in enclave memory. A sampled cause must be that of most exits at the lower end of its 95 % interval too.
func mainCause(w engine.Workload, faults float64, verdict *engine.Verdict) {
	all, most, main := 0.0, 0.0, ""
	for cause, n := range w.By(aexCausesSignal, "cause") {
		if all += n; n > most {
			most, main = n, cause
		}
	}
	kind := main
	if main == "page_fault" && faults < most/2 {
		kind = "outside_fault"
	}
	of, told := aexCauses[kind]
	uncertain := 1.96 * math.Sqrt(w.By(aexVarianceSignal, "cause")[main]/w.Window) // the variance is that of the number in the window
	if !told || most-uncertain < all/2 {
		return
	}
	verdict.Cause += fmt.Sprintf("; by cause, %s of them are by %s", text.Percent(most/all), of.what)
	verdict.Evidence = append(verdict.Evidence, aexCausesSignal.With("cause", main))
	verdict.Advice = []string{of.advice}
}

// trapped returns a verdict if the enclave often executes instructions that are not allowed inside.
func trapped(w engine.Workload, cpu, traps float64) *engine.Verdict {
	low, high := costTrap.CPU(traps, w.Clock)
	if low < w.Least(aexWorth)*cpu {
		return nil
	}
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s exceptions/s are handled inside the enclave and take %s of the CPU time: CPUID, RDTSC or SYSCALL is trapped and emulated",
			figure(traps), between(low/cpu, high/cpu)),
		Evidence: []string{trapsSignal.Name, aexSignal.Name, cpuSignal.Name},
		Advice: []string{
			"RDTSC: use an Ice Lake or later processor, which allows it inside, or read the clock less often",
			"CPUID: execute it once and keep the result; look for libraries that execute it in each call",
			"SYSCALL (\"Emulating a raw syscall instruction\" in Gramine's log): link dynamically, and use Gramine's patched libraries (libgomp)",
		},
	}
	low, high = capped(low, high, cpu)
	v.Draws(engine.AsyncExits, traps, 1, 1)
	v.Saves(w, low, high, costTrap.Assumption(), w.Clock.Assumption())
	return v
}
