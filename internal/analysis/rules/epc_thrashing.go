// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// EPCThrashing names the rule of this file.
const EPCThrashing = "epc-thrashing"

const (
	// thrashPages is how many pages are loaded back each second when an enclave thrashes. Proposed (rule 9 of the
	// advisor): at 12,000 to 40,000 cycles each that is about one hundredth of a core.
	thrashPages = 1000
	// pagingPages is the same where that takes a worthwhile share of the CPU time already. Proposed.
	pagingPages = 100
	// shortPages is the same where enclaves are known to need more than there is: slow pages keep their own rate down.
	// Proposed.
	shortPages = 10
	// neighbourShare is the part of the lost pages that others took when they are the cause. Proposed.
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
		Help: "pages that the workload's enclaves lost, by the workload that took pages",
	}
	needSignal = engine.Signal{
		Name: "need", Query: "sum by (workload, instance) (max_over_time(sgx_workload_working_set_bytes[$window]))", Unit: "bytes",
		Help: "estimate of the enclave page cache that would end the workload's paging",
	}
	allNeedSignal = engine.Signal{
		Name: "all_need", Query: "sum by (instance) (max_over_time(sgx_workload_working_set_bytes[$window]))", Unit: "bytes",
		Help: "the same of all workloads together",
	}
	epcSizeSignal = engine.Signal{
		Name: "size", Query: "sum by (instance) (sgx_epc_size_bytes)", Unit: "bytes", Help: "enclave page cache of the machine",
	}
	enclaveWorkloadsSignal = engine.Signal{
		Name: "enclave_workloads", Query: `count by (instance) (count by (workload, instance) (teescope_workload_info{tee="sgx"}))`,
		Unit: "workloads", Help: "workloads with enclaves",
	}
)

func epcThrashing() engine.Rule {
	return engine.Rule{
		Name: EPCThrashing, Title: "the enclaves need more enclave page cache than there is",
		Signals: []engine.Signal{
			teeSignal, cpuSignal, loadedSignal, machineLoadedSignal, stallSignal, evictedSignal,
			evictedBySignal, needSignal, allNeedSignal, epcSizeSignal, enclaveWorkloadsSignal,
		},
		Judge: judgeEPCThrashing,
		NotWhen: []string{
			"an enclave reads all its memory once, such as while it loads: paging ends then by itself",
			"the working set is an upper bound: without pressure nothing tells unused pages apart",
			"ksgxd evicts on a CPU that has nothing else to do: then the workload pays for loading back alone",
		},
		Sources: []string{
			"Krahn et al., TEEMon, Middleware 2020, 6.5: databases of 78, 105 and 127 MB in an enclave page cache of 94 MB",
			"Gramine, Performance tuning and analysis, Choice of SGX machine: EPC size",
			cost.Paging.Source,
		},
	}
}

// loadedBack is how many pages of a workload are loaded back each second. Drivers that tell it of the whole machine only
// tell it of a workload when that is the only one with an enclave: then the figure is the name of that signal.
func loadedBack(w engine.Workload) (pages float64, signal string, ok bool) {
	if pages, ok = w.Value(loadedSignal); ok {
		return pages, loadedSignal.Name, true
	}
	if n, told := w.Value(enclaveWorkloadsSignal); !told || n != 1 {
		return 0, "", false
	}
	pages, ok = w.Value(machineLoadedSignal)
	return pages, machineLoadedSignal.Name, ok
}

// stalled is for how many threads the workload stood still for evicted pages, on average: its part, by pages, of what was
// measured on the machine.
func stalled(w engine.Workload, pages float64) (threads float64, measured bool) {
	stall, timed := w.Value(stallSignal)
	all, counted := w.Value(machineLoadedSignal)
	if !timed || !counted || all <= 0 {
		return 0, false
	}
	return stall * min(pages/all, 1), true
}

func judgeEPCThrashing(w engine.Workload) *engine.Verdict {
	p := placeOf(w)
	cores, busy := w.Value(cpuSignal)
	pages, from, ok := loadedBack(w)
	least := float64(pagingPages)
	if _, _, short := shortage(w); short {
		least = shortPages
	}
	if !p.enclave() || !busy || !ok || pages < least {
		return nil
	}
	stall, timed := stalled(w, pages)
	if cores+stall < leastBusy {
		return nil
	}
	// A thread that stands still may do so on its CPU or asleep: the time is out of the CPU time, or beside it.
	low, high := shares(w, cost.Paging, pages, cores)
	low /= 2 // loading back alone, where another CPU evicts
	if timed {
		low, high = stall/(cores+stall), stall/max(cores, stall)
	}
	if pages < thrashPages && middle(low, high) < worthwhile {
		return nil
	}
	v := &engine.Verdict{
		Confidence: analysis.Likely,
		Cause: fmt.Sprintf("%s evicted pages are loaded back each second (%s/s), which takes %s of the time%s",
			figure(pages), megabytes(pages*pageBytes), between(low, high), epcShort(w)),
		Evidence:   []string{from, evictedSignal.Name, needSignal.Name, allNeedSignal.Name, epcSizeSignal.Name, cpuSignal.Name},
		Advice:     epcAdvice(w, p),
		Supersedes: []string{LoadBackStalls, PageFaultStorm},
	}
	if by, share, found := neighbour(w); found {
		v.Cause += fmt.Sprintf("; %s took %.0f %% of the pages that it lost", by, 100*share)
		v.Evidence = append(v.Evidence, evictedBySignal.With("by", by))
	}
	assumptions := []string{cost.Paging.Assumption(), w.Clock.Assumption(), cpuBound,
		"at least the half of that is the workload's: another CPU may do the evicting"}
	if timed {
		v.Confidence = analysis.Measured
		v.Evidence = append(v.Evidence, stallSignal.Name, machineLoadedSignal.Name)
		assumptions = []string{"the time that threads stood still is measured on the machine, and each page takes as long", cpuBound}
	}
	if from != loadedSignal.Name {
		v.Confidence = analysis.Possible
	}
	v.Gain = analysis.Amdahl(low, high, assumptions...)
	return v
}

// megabytes writes a size for a sentence.
func megabytes(bytes float64) string { return fmt.Sprintf("%.3g MiB", bytes/(1<<20)) }

// shortage tells what all enclaves together need and what there is, and whether that is known to be too little.
func shortage(w engine.Workload) (need, size float64, short bool) {
	need, known := w.Value(allNeedSignal)
	size, told := w.Value(epcSizeSignal)
	return need, size, known && told && need > size
}

// epcShort says by how much the enclave page cache is too small, where that is known.
func epcShort(w engine.Workload) string {
	all, size, short := shortage(w)
	if !short {
		return ""
	}
	return fmt.Sprintf(": all enclaves together need up to %s and there are %s", megabytes(all), megabytes(size))
}

// neighbour is the other workload that takes most of the pages which this one loses, when others take most of them.
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

func epcAdvice(w engine.Workload, p place) []string {
	more := ""
	if all, size, short := shortage(w); short {
		more = fmt.Sprintf("move to a machine with %s of enclave page cache or more (Ice Lake servers have up to 1 TB), or shrink what is in enclaves by %s",
			megabytes(all), megabytes(all-size))
	}
	apart := ""
	if by, _, found := neighbour(w); found {
		apart = "run " + by + " on another machine: it takes the pages that this workload loses"
	}
	return p.advice(
		tip{"", apart},
		tip{"", more},
		tip{"", "keep less in the enclave: smaller caches, data that is encrypted by the application outside of it"},
		tip{"", "touch memory in order, and keep what is used together in the same pages"},
		tip{"Gramine", "turn sgx.preheat_enclave off when the enclave does not fit: it evicts what others use"},
		tip{"Gramine", "loader.env.MALLOC_ARENA_MAX = \"1\": each thread's arena of 64 MiB is spread over pages of its own"},
		tip{"SCONE", "lower SCONE_HEAP to what the program needs"},
	)
}
