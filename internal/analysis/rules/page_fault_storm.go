// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// PageFaultStorm names the rule of this file.
const PageFaultStorm = "page-fault-storm"

const (
	// faultsPerSecond is the least rate of page faults. Proposed (rule 14 of the advisor: 100/s after the start).
	faultsPerSecond = 100
	// forkFaults is how many faults a new process makes at most before it does anything. Proposed; 19 were measured of
	// one that ends at once.
	forkFaults = 200
	// faultsNow is the least rate at the end of the window, against that of all of it: a start is over by then. Proposed.
	faultsNow = 0.3
)

// Signals of this rule alone.
var (
	faultsSignal = engine.Signal{
		Name: "faults", Query: perSecond("teescope_page_faults_total", "reason"), Unit: "1/s",
		Help: "page faults, by the reason that the processor gives",
	}
	recentFaultsSignal = engine.Signal{
		Name: "now", Unit: "1/s", Help: "page faults in the last minute",
		Query: "sum by (workload, instance) (rate(teescope_page_faults_total[1m]))",
	}
	faultsInsideSignal = engine.Signal{
		Name: "enclave", Query: perSecond("sgx_workload_faults_total"), Unit: "1/s", Help: "page faults on enclave memory",
	}
	addedSignal = engine.Signal{
		Name: "added", Query: perSecond("sgx_workload_pages_augmented_total"), Unit: "1/s",
		Help: "pages added to enclaves that run (EAUG)",
	}
	systemSignal = engine.Signal{
		Name: "system", Query: perSecond(`teescope_cpu_seconds_total{mode="system"}`), Unit: "cores", Help: "CPU time in the kernel",
	}
)

func pageFaultStorm() engine.Rule {
	return engine.Rule{
		Name: PageFaultStorm, Title: "page faults take much of the time",
		Signals: []engine.Signal{
			teeSignal, cpuSignal, loadedSignal, faultsSignal, recentFaultsSignal, faultsInsideSignal,
			addedSignal, forksSignal, majorFaultsSignal, systemSignal,
		},
		Judge: judgePageFaultStorm,
		NotWhen: []string{
			"the program is still starting: memory that is touched for the first time faults once",
			"programs that create processes all the time: their faults are those of process-churn",
			"faults that read from a device: they wait, and the rate says nothing of how long",
		},
		Sources: []string{
			"Krahn et al., TEEMon, Middleware 2020, 6.5: page faults in user mode by reason",
			"Gramine, Performance tuning and analysis, Other considerations: sgx.preheat_enclave; Glibc malloc tuning",
			"Intel SDM vol. 3A, 4.7: the error code of a page fault",
			cost.Fault.Source, cost.AEX.Source,
		},
	}
}

func judgePageFaultStorm(w engine.Workload) *engine.Verdict {
	p := placeOf(w)
	cores, busy := cpuOf(w)
	rate, counted := w.Value(faultsSignal)
	now, recent := w.Value(recentFaultsSignal)
	if !p.known() || !busy || !counted || !recent || now < faultsNow*rate {
		return nil
	}
	// What the enclave page cache is too small for is another cause.
	loaded, _ := w.Value(loadedSignal)
	inside, _ := w.Value(faultsInsideSignal)
	inside = max(min(inside, rate)-loaded, 0)
	rate -= min(loaded, rate)
	created, _ := w.Value(forksSignal)
	if rate < faultsPerSecond || rate < forkFaults*created {
		return nil
	}
	low, high := shares(w, cost.Fault, rate, cores)
	bound, assumptions := 1.0, []string{cost.Fault.Assumption(), w.Clock.Assumption(), cpuBound}
	if system, told := w.Value(systemSignal); told {
		bound = system / cores
		assumptions = append(assumptions, "no more is saved than the time in the kernel, and that of exits from the enclave")
	}
	high = min(high, bound)
	if inside > 0 {
		exitLow, exitHigh := shares(w, cost.AEX, inside, cores)
		low, high = low+exitLow, high+exitHigh
		assumptions = append(assumptions, cost.AEX.Assumption())
	}
	least := worthwhile
	if !p.enclave() {
		least = nativeWorthwhile
	}
	if low = min(low, high); middle(low, high) < least {
		return nil
	}
	reasons := w.By(faultsSignal, "reason")
	top := largest(reasons, slices.Collect(maps.Keys(reasons))...)
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s page faults a second take %s of the CPU time; most of them: %s",
			figure(rate), between(low, high), reasonOf(top)),
		Evidence: []string{faultsSignal.With("reason", top), faultsSignal.Name, recentFaultsSignal.Name, faultsInsideSignal.Name, addedSignal.Name, majorFaultsSignal.Name, systemSignal.Name, cpuSignal.Name},
		Advice:   faultAdvice(w, p, top),
	}
	if !p.enclave() {
		v.Severity = analysis.Info
		return v
	}
	v.Gain = analysis.Amdahl(low, high, append(assumptions, "memory that is touched once and kept faults no more")...)
	return v
}

// reasonOf says in words what the label reason means.
func reasonOf(reason string) string {
	text := map[string]string{
		"no_page_found":     "memory read that is not there yet",
		"write_fault":       "memory written that is not there yet",
		"write_prot_fault":  "writes to pages that are shared until written (copy on write), or protected",
		"read_prot_fault":   "reads of pages that are protected",
		"instr_fetch_fault": "code that is not there yet",
		"protection_key":    "pages with another protection key",
		"sgx":               "accesses that the processor refuses to the enclave",
		"rmp":               "pages that the guest does not own (RMP)",
	}[reason]
	if text == "" {
		return reason
	}
	return text + " (" + reason + ")"
}

// faultAdvice depends on why most of the faults happen.
func faultAdvice(w engine.Workload, p place, reason string) []string {
	added, _ := w.Value(addedSignal)
	switch reason {
	case "no_page_found", "write_fault", "instr_fetch_fault":
		if added >= faultsPerSecond {
			return p.advice(
				tip{"", fmt.Sprintf("memory comes and goes in the running enclave (%s pages/s are added): keep it in a pool instead of giving it back", figure(added))},
				tip{"Gramine", "set sgx.edmm_enable = false where the enclave's size is known, or loader.env.MALLOC_TRIM_THRESHOLD_ and MALLOC_TOP_PAD_ high"},
			)
		}
		return p.advice(
			tip{"", "touch memory once at the start and keep it: pools, no trimming (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD), huge pages outside of enclaves"},
			tip{"Gramine", "sgx.preheat_enclave = true, where the whole enclave fits into the enclave page cache and EDMM is off"},
			tip{"Gramine", "loader.env.MALLOC_ARENA_MAX = \"1\" where 64 MiB for each thread do not fit into sgx.enclave_size"},
		)
	case "write_prot_fault":
		return p.advice(
			tip{"", "do not fork while the data is written: snapshots of Redis (save, BGSAVE) copy each page that is written meanwhile"},
			tip{"", "do not change the protection of pages in turns (mprotect): garbage collectors have settings for it"},
		)
	case "sgx":
		return p.advice(
			tip{"", "look whether the enclave was lost: after a suspend or a migration of the virtual machine it must be started again"},
			tip{"", "with EDMM, let threads not race for memory that was just added: they touch pages before those are accepted"},
		)
	case "rmp":
		return p.advice(tip{"", "keep buffers shared or private, and do not convert them for each transfer (SWIOTLB of a fixed size)"})
	}
	return p.advice(tip{"", "find the code that faults: perf record -e exceptions:page_fault_user -g"})
}
