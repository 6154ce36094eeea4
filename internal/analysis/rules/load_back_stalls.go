// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// LoadBackStalls names the rule of this file.
const LoadBackStalls = "load-back-stalls"

const (
	// stallSeconds is the least mean time to load back a page that loading alone does not explain. Proposed: five times
	// the duration of 40,000 cycles at 2 GHz.
	stallSeconds = 100e-6
	// stallShare is the least share of the time that threads wait. Proposed.
	stallShare = 0.02
)

// Signals of this rule alone.
var (
	meanStallSignal = engine.Signal{
		Name: "mean", Unit: "seconds", PerEvent: true, Help: "mean time that a thread waited for an evicted page, of all enclaves",
		Query: "sum by (instance) (rate(sgx_load_back_seconds_sum[$window])) / sum by (instance) (rate(sgx_load_back_seconds_count[$window]))",
	}
	worstStallSignal = engine.Signal{
		Name: "worst", Unit: "seconds", PerEvent: true, Help: "99th percentile of the time that a thread waited for an evicted page",
		Query: "histogram_quantile(0.99, sum by (instance, le) (rate(sgx_load_back_seconds_bucket[$window])))",
	}
	directReclaimSignal = engine.Signal{
		Name: "direct", Query: machinePerSecond(`sgx_reclaim_seconds_sum{by="direct"}`), Unit: "threads",
		Help: "threads that evicted pages themselves because no page was free, on average",
	}
	retriesSignal = engine.Signal{
		Name: "retries", Query: machinePerSecond("sgx_epc_fault_retries_total"), Unit: "1/s", Help: "page faults that had to be retried",
	}
)

// Thresholds that the configuration can replace.
var (
	stallTime = engine.Threshold{Name: "time", Default: stallSeconds, Unit: "seconds", Help: "minimum mean time to load back a page"}
	stallCost = engine.Threshold{Name: "share", Default: stallShare, Unit: "ratio", Help: "minimum share of the time that threads wait"}
)

func loadBackStalls() engine.Rule {
	return engine.Rule{
		Name: LoadBackStalls, Title: "threads wait long for single enclave pages",
		Code:        codelink.Waits,
		Waits:       codelink.ForEPC,
		CompetesFor: analysis.SharedEPC,
		Thresholds:  []engine.Threshold{stallTime, stallCost},
		Signals: []engine.Signal{
			teeSignal, cpuSignal, loadedSignal, machineLoadedSignal, stallSignal, meanStallSignal,
			worstStallSignal, directReclaimSignal, retriesSignal,
		},
		Judge: judgeLoadBackStalls,
		NotWhen: []string{
			"another enclave has the slow pages: the times are those of all enclaves together",
			"a hypervisor takes CPU time from the host: everything is slow then",
		},
		Sources: []string{
			"Linux, arch/x86/kernel/cpu/sgx: sgx_vma_fault retries while a page is evicted; sgx_reclaim_direct below the low watermark",
			cost.Paging.Source,
		},
	}
}

func judgeLoadBackStalls(w engine.Workload) *engine.Verdict {
	e := environmentOf(w)
	cores, busy := w.Value(cpuSignal)
	pages, counted := w.Value(loadedSignal)
	mean, measured := w.Value(meanStallSignal)
	if !e.enclave() || !busy || !counted || !measured || pages <= 0 || mean < w.LeastFor(stallTime) {
		return nil
	}
	stall, timed := stalled(w, pages)
	if !timed || cores+stall < w.Least(leastBusy) {
		return nil
	}
	_, loading := cost.Paging.CPU(1, w.Clock)
	beyond := stall * (1 - loading/mean)
	low, high := beyond/(cores+stall), beyond/max(cores, stall)
	if low < w.LeastFor(stallCost) {
		return nil
	}
	v := &engine.Verdict{
		Confidence: analysis.Measured,
		Cause: fmt.Sprintf("only %s pages are loaded back each second, but each takes %s ms instead of %s ms: threads wait for %s of the time",
			figure(pages), figure(1000*mean), figure(1000*loading), between(low, high)),
		Evidence: []string{meanStallSignal.Name, worstStallSignal.Name, loadedSignal.Name, stallSignal.Name, directReclaimSignal.Name, retriesSignal.Name, cpuSignal.Name},
		Advice: e.advice(
			tip{"", stallReason(w)},
			tip{"", "leave a CPU to ksgxd, which evicts in the background: if it waits for a CPU, threads evict pages themselves"},
			tip{"", "keep the enclaves some MiB smaller than the enclave page cache: no page must then be evicted first"},
			tip{"", "keep few enclave threads busy: each eviction interrupts all threads of the enclave (ETRACK, IPI)"},
		),
	}
	v.Waits(w, stall, low, high, "the time that threads waited is measured on the machine, and each page takes as long",
		"loading a page takes 40,000 cycles at most, and that part remains", w.Clock.Assumption())
	return v
}

// stallReason states what takes the time, where the driver shows it.
func stallReason(w engine.Workload) string {
	direct, _ := w.Value(directReclaimSignal)
	retries, _ := w.Value(retriesSignal)
	all, _ := w.Value(machineLoadedSignal)
	stall, _ := w.Value(stallSignal)
	switch {
	case direct >= stall/2 && direct > 0:
		return "threads evict pages themselves before they get one (direct reclaim) because enclaves grow faster than ksgxd evicts: load the enclaves one after the other"
	case retries >= all && retries > 0:
		return "pages are needed while they are being evicted: the working set is slightly larger than the enclave page cache, and reducing it by a few MiB ends the waits"
	}
	return ""
}
