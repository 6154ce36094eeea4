// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// LoadBackStalls names the rule of this file.
const LoadBackStalls = "load-back-stalls"

const (
	// stallSeconds is the mean time for one page to be loaded back from which on something else than loading takes it.
	// Proposed: five times what 40,000 cycles are at 2 GHz.
	stallSeconds = 100e-6
	// stallShare is the least share of the time that is spent so. Proposed.
	stallShare = 0.02
)

// Signals of this rule alone.
var (
	meanStallSignal = engine.Signal{
		Name: "mean", Unit: "seconds", Help: "how long a thread stood still for an evicted page, the mean of all enclaves",
		Query: "sum by (instance) (rate(sgx_load_back_seconds_sum[$window])) / sum by (instance) (rate(sgx_load_back_seconds_count[$window]))",
	}
	worstStallSignal = engine.Signal{
		Name: "worst", Unit: "seconds", Help: "the longest of a hundred times that a thread stood still for an evicted page",
		Query: "histogram_quantile(0.99, sum by (instance, le) (rate(sgx_load_back_seconds_bucket[$window])))",
	}
	directReclaimSignal = engine.Signal{
		Name: "direct", Query: machinePerSecond(`sgx_reclaim_seconds_sum{by="direct"}`), Unit: "threads",
		Help: "threads that evicted pages themselves because none was free, on average",
	}
	retriesSignal = engine.Signal{
		Name: "retries", Query: machinePerSecond("sgx_epc_fault_retries_total"), Unit: "1/s", Help: "faults that were to be tried again",
	}
)

func loadBackStalls() engine.Rule {
	return engine.Rule{
		Name: LoadBackStalls, Title: "threads stand still for single enclave pages",
		Signals: []engine.Signal{
			teeSignal, cpuSignal, loadedSignal, machineLoadedSignal, stallSignal, meanStallSignal,
			worstStallSignal, directReclaimSignal, retriesSignal,
		},
		Judge: judgeLoadBackStalls,
		NotWhen: []string{
			"the times are of all enclaves together: another one may have the slow pages",
			"the host's CPUs are taken from it by a hypervisor: everything is slow then",
		},
		Sources: []string{
			"Linux, arch/x86/kernel/cpu/sgx: sgx_vma_fault retries while a page is evicted; sgx_reclaim_direct below the low watermark",
			cost.Paging.Source,
		},
	}
}

func judgeLoadBackStalls(w engine.Workload) *engine.Verdict {
	p := placeOf(w)
	cores, busy := w.Value(cpuSignal)
	pages, counted := w.Value(loadedSignal)
	mean, measured := w.Value(meanStallSignal)
	if !p.enclave() || !busy || !counted || !measured || pages <= 0 || mean < stallSeconds {
		return nil
	}
	stall, timed := stalled(w, pages)
	if !timed || cores+stall < leastBusy {
		return nil
	}
	_, loading := cost.Paging.CPU(1, w.Clock)
	beyond := stall * (1 - loading/mean)
	low, high := beyond/(cores+stall), beyond/max(cores, stall)
	if low < stallShare {
		return nil
	}
	return &engine.Verdict{
		Confidence: analysis.Measured,
		Cause: fmt.Sprintf("only %s pages are loaded back each second, but each takes %s ms where %s ms would do: threads stand still for %s of the time",
			figure(pages), figure(1000*mean), figure(1000*loading), between(low, high)),
		Evidence: []string{meanStallSignal.Name, worstStallSignal.Name, loadedSignal.Name, stallSignal.Name, directReclaimSignal.Name, retriesSignal.Name, cpuSignal.Name},
		Advice: p.advice(
			tip{"", stallReason(w)},
			tip{"", "leave a CPU to ksgxd, which evicts in the background: where it must wait for one, threads evict for themselves"},
			tip{"", "keep the enclaves below the enclave page cache by some MiB: then nothing is evicted when a page is needed"},
			tip{"", "keep busy enclave threads few: each page that is evicted interrupts all threads of its enclave (ETRACK, IPI)"},
		),
		Gain: analysis.Amdahl(low, high, "the time that threads stood still is measured on the machine, and each page takes as long",
			"loading a page takes 40,000 cycles at most: that part stays", w.Clock.Assumption(), cpuBound),
	}
}

// stallReason says what the time goes to, where the driver tells it.
func stallReason(w engine.Workload) string {
	direct, _ := w.Value(directReclaimSignal)
	retries, _ := w.Value(retriesSignal)
	all, _ := w.Value(machineLoadedSignal)
	stall, _ := w.Value(stallSignal)
	switch {
	case direct >= stall/2 && direct > 0:
		return "threads evict pages themselves before they get one (direct reclaim): enclaves grow faster than ksgxd evicts; load them one after the other"
	case retries >= all && retries > 0:
		return "pages are wanted while they are being evicted: the working set is only just larger than the enclave page cache, and a few MiB less end it"
	}
	return ""
}
