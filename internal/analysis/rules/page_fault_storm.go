// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// PageFaultStorm names the rule of this file.
const PageFaultStorm = "page-fault-storm"

const (
	// faultsPerSecond is the least rate of page faults. Proposed.
	faultsPerSecond = 100
	// forkFaults is the largest number of faults that a new process makes before it does any work. Proposed; a process
	// that ends at once made 19.
	forkFaults = 200
	// faultsNow is the least ratio of the rate at the end of the window to that of the whole window. A start is over by
	// then. Proposed.
	faultsNow = 0.3
)

// Signals of this rule alone.
var (
	faultsSignal = engine.Signal{
		Name: "faults", Query: perSecond("teescope_page_faults_total", "reason"), Unit: "1/s",
		Help: "page faults, by the reason that the processor reports",
	}
	recentFaultsSignal = engine.Signal{
		Name: "now", Unit: "1/s", Help: "page faults in the last two and a half minutes, in which a scrape every minute leaves two samples",
		Query: "sum by (workload, instance) (rate(teescope_page_faults_total[150s]))",
	}
	addedSignal = engine.Signal{
		Name: "added", Query: perSecond("sgx_workload_pages_augmented_total"), Unit: "1/s",
		Help: "pages added to running enclaves (EAUG)",
	}
	systemSignal = engine.Signal{
		Name: "system", Query: perSecond(`teescope_cpu_seconds_total{mode="system"}`), Unit: "cores", Help: "CPU time in the kernel",
	}
)

// faultRate can be replaced in the configuration.
var faultRate = engine.Threshold{Name: "faults", Default: faultsPerSecond, Unit: "1/s", Help: "minimum rate of page faults"}

func pageFaultStorm() engine.Rule {
	return engine.Rule{
		Name: PageFaultStorm, Title: "page faults take much of the time",
		Code:       codelink.CPU,
		Threads:    analysis.ThreadCPU,
		Thresholds: []engine.Threshold{faultRate},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, loadedSignal, faultsSignal, recentFaultsSignal, enclaveFaultsSignal,
			addedSignal, forksSignal, majorFaultsSignal, systemSignal,
		},
		Judge: judgePageFaultStorm,
		NotWhen: []string{
			"the program is still starting: memory faults once when it is first used",
			"the program creates many processes: process-churn explains their faults",
			"a cache or a heap in an enclave with EDMM grows once: pages are added until it has its size",
			"the faults read from a device: their rate does not show how long they wait",
		},
		Sources: []string{
			"Krahn et al., TEEMon, Middleware 2020, 6.5: page faults in user mode by reason",
			"Gramine, Performance tuning and analysis, Other considerations: sgx.preheat_enclave; Glibc malloc tuning",
			"Intel SDM vol. 3A, 4.7: the error code of a page fault",
			cost.Fault.Source, cost.AEX.Source, cost.Added.Source,
			"Dhanraj et al., Adaptive and Efficient Dynamic Memory Management for Hardware Enclaves, arXiv 2504.16251: EDMM slows programs by up to 58 %",
		},
	}
}

func judgePageFaultStorm(w engine.Workload) *engine.Verdict {
	e := environmentOf(w)
	cores, busy := cpuOf(w)
	rate, counted := w.Value(faultsSignal)
	now, recent := w.Value(recentFaultsSignal)
	if !e.known() || !busy || !counted || !recent || now < w.Least(faultsNow)*rate {
		return nil
	}
	// Another rule judges faults on evicted pages.
	loaded, _ := w.Value(loadedSignal)
	inside, _ := w.Value(enclaveFaultsSignal)
	inside = max(min(inside, rate)-loaded, 0)
	rate -= min(loaded, rate)
	created, _ := w.Value(forksSignal)
	if rate < w.LeastFor(faultRate) || rate < w.Least(forkFaults)*created {
		return nil
	}
	low, high := shares(w, cost.Fault, rate, cores)
	bound, assumptions := 1.0, []string{cost.Fault.Assumption(), w.Clock.Assumption()}
	if system, measured := w.Value(systemSignal); measured {
		bound = system / cores
		assumptions = append(assumptions, "at most the time in the kernel and that of enclave exits is saved")
	}
	low, high = capped(low, high, bound)
	var asyncLow, asyncHigh float64 // parts of the time that asynchronous exits take
	if inside > 0 {
		exitLow, exitHigh := shares(w, cost.AEX, inside, cores)
		low, high = low+exitLow, high+exitHigh
		asyncLow, asyncHigh = exitLow/low, exitHigh/high
		assumptions = append(assumptions, cost.AEX.Assumption())
	}
	added, _ := w.Value(addedSignal)
	if added = min(added, inside); added > 0 {
		addLow, addHigh := shares(w, cost.Added, added, cores)
		asyncLow, asyncHigh = asyncLow*low/(low+addLow), asyncHigh*high/(high+addHigh)
		low, high = low+addLow, high+addHigh
		assumptions = append(assumptions, cost.Added.Assumption())
	}
	least := worthwhile
	if !e.enclave() {
		least = nativeWorthwhile
	}
	if low, high = capped(low, high, 1); middle(low, high) < w.Least(least) {
		return nil
	}
	reasons := w.By(faultsSignal, "reason")
	top := largest(reasons, slices.Collect(maps.Keys(reasons))...)
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s page faults/s take %s of the CPU time; most frequent: %s",
			figure(rate), between(low, high), reasonOf(top)),
		Evidence: []string{faultsSignal.With("reason", top), faultsSignal.Name, recentFaultsSignal.Name, enclaveFaultsSignal.Name, addedSignal.Name, majorFaultsSignal.Name, systemSignal.Name, cpuSignal.Name},
		Advice:   faultAdvice(w, e, top),
	}
	if !e.enclave() {
		v.Severity = analysis.Info
		return v
	}
	if added >= w.Least(faultsPerSecond) {
		v.Cause += fmt.Sprintf("; %s/s add a page to the running enclave", figure(added))
	}
	v.Draws(engine.AsyncExits, inside, asyncLow, asyncHigh)
	v.Saves(w, low*cores, high*cores, append(assumptions, "memory that is kept after its first use does not fault again")...)
	return v
}

// reasonOf describes a value of the label reason.
func reasonOf(reason string) string {
	text := map[string]string{
		"no_page_found":     "reads of memory that is not mapped yet",
		"write_fault":       "writes to memory that is not mapped yet",
		"write_prot_fault":  "writes to copy-on-write or protected pages",
		"read_prot_fault":   "reads of protected pages",
		"instr_fetch_fault": "code that is not mapped yet",
		"protection_key":    "accesses to pages with another protection key",
		"sgx":               "accesses that the processor denies to the enclave",
		"rmp":               "accesses to pages that the guest does not own (RMP)",
	}[reason]
	if text == "" {
		return reason
	}
	return text + " (" + reason + ")"
}

// faultAdvice returns advice for the most frequent reason.
func faultAdvice(w engine.Workload, e environment, reason string) []string {
	added, _ := w.Value(addedSignal)
	switch reason {
	case "no_page_found", "write_fault", "instr_fetch_fault":
		if added >= faultsPerSecond {
			return e.advice(
				tip{"", fmt.Sprintf("the running enclave allocates and frees memory (%s pages/s are added): keep memory in a pool instead", figure(added))},
				tip{"Gramine", "set sgx.edmm_enable = false if the enclave's size is known, or raise loader.env.MALLOC_TRIM_THRESHOLD_ and MALLOC_TOP_PAD_"},
			)
		}
		return e.advice(
			tip{"", "allocate memory once at the start and keep it: pools, no trimming (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD), huge pages outside enclaves"},
			tip{"Gramine", "set sgx.preheat_enclave = true if the whole enclave fits into the enclave page cache and EDMM is off"},
			tip{"Gramine", "loader.env.MALLOC_ARENA_MAX = \"1\" if 64 MiB for each thread do not fit into sgx.enclave_size"},
		)
	case "write_prot_fault":
		return e.advice(
			tip{"", "do not fork while data is written: snapshots of Redis (save, BGSAVE) copy each page that is written meanwhile"},
			tip{"", "do not change the protection of pages back and forth (mprotect): garbage collectors have settings for this"},
		)
	case "sgx":
		return e.advice(
			tip{"", "check whether the enclave was lost: after a suspend or a migration of the virtual machine it must be restarted"},
			tip{"", "with EDMM, avoid races between threads for new memory: they access pages that are not accepted yet"},
		)
	case "rmp":
		return e.advice(tip{"", "keep buffers either shared or private, and do not convert them for each transfer (SWIOTLB of a fixed size)"})
	}
	return e.advice(tip{"", "find the code that faults: perf record -e exceptions:page_fault_user -g"})
}
