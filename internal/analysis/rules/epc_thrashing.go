// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
	"github.com/teescope/teescope/internal/analysis/estimate"
)

// EPCThrashing names the rule of this file.
const EPCThrashing = "epc-thrashing"

const (
	// thrashPages is the rate of pages loaded back that makes an enclave thrash. Proposed: at
	// 12,000 to 40,000 cycles each this is about one hundredth of a core.
	thrashPages = 1000
	// pagingPages is the same where paging already takes a worthwhile share of the CPU time. Proposed.
	pagingPages = 100
	// shortPages is the same where the enclave page cache is known to be too small. Slow pages keep their own rate low.
	// Proposed.
	shortPages = 10
	// neighbourShare is the least part of the lost pages that others took, for them to be the cause. Proposed.
	neighbourShare = 0.5
)

// Signals of this rule alone.
var (
	evictedSignal = engine.Signal{
		Name: "evicted", Query: perSecond("sgx_workload_pages_evicted_total"), Unit: "1/s",
		Help: "pages of the workload's enclaves that were evicted",
	}
	evictedBySignal = engine.Signal{
		Name: "by", Query: perSecond("sgx_workload_pages_evicted_by_total", "by"), Unit: "1/s",
		Help: "pages that the workload's enclaves lost, by the workload that took them",
	}
	needSignal = engine.Signal{
		Name: "need", Query: "sum by (workload, instance) (max_over_time(sgx_workload_working_set_bytes[$window]))", Unit: "bytes",
		Help: "estimate of the enclave page cache that would end the workload's paging",
	}
	allNeedSignal = engine.Signal{
		Name: "all_need", Query: "sum by (instance) (max_over_time(sgx_workload_working_set_bytes[$window]))", Unit: "bytes",
		Help: "estimate of the enclave page cache that would end the paging of all workloads together",
	}
	epcSizeSignal = engine.Signal{
		Name: "size", Query: "sum by (instance) (sgx_epc_size_bytes)", Unit: "bytes", Help: "enclave page cache of the machine",
	}
	enclaveWorkloadsSignal = engine.Signal{
		Name: "enclave_workloads", Query: `count by (instance) (count by (workload, instance) (teescope_workload_info{tee="sgx"}))`,
		Unit: "workloads", Help: "workloads with enclaves",
	}
)

// epcPages can be replaced in the configuration.
var epcPages = engine.Threshold{Name: "pages", Default: pagingPages, Unit: "1/s", Help: "minimum rate of pages loaded back, unless the enclave page cache is known to be too small"}

func epcThrashing() engine.Rule {
	return engine.Rule{
		Name: EPCThrashing, Title: "the enclaves do not fit into the enclave page cache",
		Code:        codelink.CPU,
		CompetesFor: analysis.SharedEPC,
		Thresholds:  []engine.Threshold{epcPages},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, loadedSignal, machineLoadedSignal, stallSignal, evictedSignal,
			evictedBySignal, needSignal, allNeedSignal, epcSizeSignal, enclaveWorkloadsSignal,
		},
		Judge: judgeEPCThrashing,
		NotWhen: []string{
			"an enclave reads all its memory once, for example while it loads: the paging ends by itself",
			"the working set is an upper bound: without paging, unused pages cannot be detected",
			"ksgxd evicts on an idle CPU: the workload then pays only for loading pages back",
		},
		Sources: []string{
			"Krahn et al., TEEMon, Middleware 2020, 6.5: databases of 78, 105 and 127 MB in an enclave page cache of 94 MB",
			"Gramine, Performance tuning and analysis, Choice of SGX machine: EPC size",
			cost.Paging.Source,
		},
	}
}

// loadedBack returns the rate at which pages of a workload are loaded back, and the name of the signal. Some drivers
// count only for the whole machine. That count is used if the workload is the only one with an enclave.
func loadedBack(w engine.Workload) (pages float64, signal string, ok bool) {
	if pages, ok = w.Value(loadedSignal); ok {
		return pages, loadedSignal.Name, true
	}
	if n, counted := w.Value(enclaveWorkloadsSignal); !counted || n != 1 {
		return 0, "", false
	}
	pages, ok = w.Value(machineLoadedSignal)
	return pages, machineLoadedSignal.Name, ok
}

// stalled returns how many threads of the workload waited for evicted pages, on average. It is the workload's part, by
// pages, of what was measured on the machine.
func stalled(w engine.Workload, pages float64) (threads float64, measured bool) {
	stall, timed := w.Value(stallSignal)
	all, counted := w.Value(machineLoadedSignal)
	if !timed || !counted || all <= 0 {
		return 0, false
	}
	return stall * min(pages/all, 1), true
}

func judgeEPCThrashing(w engine.Workload) *engine.Verdict {
	e := environmentOf(w)
	cores, busy := w.Value(cpuSignal)
	pages, from, ok := loadedBack(w)
	least := w.Threshold(epcPages)
	if _, _, short := shortage(w); short {
		least = shortPages
	}
	if !e.enclave() || !busy || !ok || pages < w.Least(least) {
		return nil
	}
	stall, timed := stalled(w, pages)
	if cores+stall < w.Least(leastBusy) {
		return nil
	}
	// A thread that waits for a page may do so on its CPU or asleep. The time is thus within the CPU time or beyond it.
	low, high := shares(w, cost.Paging, pages, cores)
	low /= 2 // loading back alone, where another CPU evicts
	if timed {
		low, high = stall/(cores+stall), stall/max(cores, stall)
	}
	if pages < w.Least(thrashPages) && middle(low, high) < w.Least(worthwhile) {
		return nil
	}
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s evicted pages are loaded back each second (%s/s), which takes %s of the time%s",
			figure(pages), megabytes(pages*pageBytes), between(low, high), epcShort(w)),
		Evidence:   []string{from, evictedSignal.Name, needSignal.Name, allNeedSignal.Name, epcSizeSignal.Name, cpuSignal.Name},
		Advice:     epcAdvice(w, e),
		Supersedes: []string{LoadBackStalls, PageFaultStorm},
	}
	if by, share, found := neighbour(w); found {
		v.Cause += fmt.Sprintf("; %s took %.0f %% of the pages that it lost", by, 100*share)
		v.Evidence = append(v.Evidence, evictedBySignal.With("by", by))
	}
	spent, most := pagingTime(w, pages, cores)
	assumptions := []string{cost.Paging.Assumption(), w.Clock.Assumption(),
		"at least half of that time is the workload's: another CPU may evict the pages"}
	v.Saves(w, spent, most, assumptions...)
	if timed {
		v.Confidence = analysis.Measured
		v.Evidence = append(v.Evidence, stallSignal.Name, machineLoadedSignal.Name)
		v.Waits(w, stall, low, high, "the time that threads waited is measured on the machine, and each page takes as long")
		if most >= stall {
			v.Saving = estimate.Saves(spent, most, append(assumptions, "at most the time that threads waited is saved")...)
		}
	}
	if from != loadedSignal.Name {
		v.Confidence = analysis.Possible
	}
	return v
}

// pagingTime returns the CPU time in cores that loading back this many pages a second takes. Where the waits for pages were
// measured, it is at most as long.
func pagingTime(w engine.Workload, pages, cores float64) (low, high float64) {
	low, high = cost.Paging.CPU(pages, w.Clock)
	low, high = capped(low/2, high, cores) // another CPU may evict the pages
	if stall, timed := stalled(w, pages); timed {
		low, high = capped(low, high, stall)
	}
	return low, high
}

// megabytes formats a size for a sentence.
func megabytes(bytes float64) string { return fmt.Sprintf("%.3g MiB", bytes/(1<<20)) }

// shortage returns how much enclave page cache all enclaves need, how much exists, and whether that is known to be too
// little.
func shortage(w engine.Workload) (need, size float64, short bool) {
	need, known := w.Value(allNeedSignal)
	size, sized := w.Value(epcSizeSignal)
	return need, size, known && sized && need > size
}

// epcShort states how much is missing from the enclave page cache, where that is known.
func epcShort(w engine.Workload) string {
	all, size, short := shortage(w)
	if !short {
		return ""
	}
	return fmt.Sprintf(": all enclaves together need up to %s, and the enclave page cache has %s", megabytes(all), megabytes(size))
}

// neighbour returns the workload that takes most of this one's pages, if other workloads take most of them.
func neighbour(w engine.Workload) (name string, share float64, found bool) {
	by := w.By(evictedBySignal, "by")
	all, others := total(by), make(map[string]float64)
	for n, pages := range by {
		if n != w.Name && n != "" {
			others[n] = pages
			name = largest(others, append([]string{n}, name)...)
		}
	}
	if all <= 0 || total(others) < neighbourShare*all {
		return "", 0, false
	}
	return name, by[name] / all, true
}

func epcAdvice(w engine.Workload, e environment) []string {
	more := ""
	if all, size, short := shortage(w); short {
		more = fmt.Sprintf("move to a machine with at least %s of enclave page cache (Ice Lake servers have up to 1 TB), or make the enclaves smaller by %s",
			megabytes(all), megabytes(all-size))
	}
	apart := ""
	if by, _, found := neighbour(w); found {
		apart = "run " + by + " on another machine: it takes the pages that this workload loses"
	}
	return e.advice(
		tip{"", apart},
		tip{"", more},
		tip{"", "keep less in the enclave: use smaller caches, or encrypt data in the application and store it outside"},
		tip{"", "access memory in order, and keep data that is used together in the same pages"},
		tip{"Gramine", "set sgx.preheat_enclave = false when the enclave does not fit: preheating evicts pages that others use"},
		tip{"Gramine", "loader.env.MALLOC_ARENA_MAX = \"1\": otherwise each thread has an arena of 64 MiB with pages of its own"},
		tip{"SCONE", "lower SCONE_HEAP to what the program needs"},
	)
}
