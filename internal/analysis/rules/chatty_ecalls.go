// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/codelink"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/engine"
)

// ChattyECALLs names the rule of this file.
const ChattyECALLs = "chatty-ecalls"

// Signals of this rule alone.
var (
	ecallsSignal = engine.Signal{
		Name: "ecalls", Query: perSecond(`teescope_ecalls_total{mode!="switchless"}`, "ecall"), Unit: "1/s",
		Help: "calls into the enclave, by name, without switchless ones",
	}
	ecallTimeSignal = engine.Signal{
		Name: "ecall_time", Query: perSecond("teescope_ecall_seconds_sum", "ecall"), Unit: "threads",
		Help: "threads in ECALLs on average, by name, including their OCALLs (processes that --watch names)",
	}
	ecallTimedSignal = engine.Signal{
		Name: "ecalls_timed", Query: perSecond("teescope_ecall_seconds_count", "ecall"), Unit: "1/s", Help: "ECALLs whose time was measured, by name",
	}
)

// ecallCost can be replaced in the configuration.
var ecallCost = engine.Threshold{Name: "share", Default: ocallShare, Unit: "ratio", Help: "minimum share of the CPU time that entering and leaving takes"}

func chattyECALLs() engine.Rule {
	return engine.Rule{
		Name: ChattyECALLs, Title: "short calls into the enclave take much of the time",
		Code:       codelink.ECALLs,
		Threads:    analysis.ThreadCPU,
		Thresholds: []engine.Threshold{ecallCost},
		Signals:    []engine.Signal{teeSignal, cpuSignal, userSignal, exitsSignal, ecallsSignal, ecallTimeSignal, ecallTimedSignal},
		Judge:      judgeChattyECALLs,
		NotWhen: []string{
			"each call must be answered before the next one is made, so that calls cannot be merged",
			"the cost of a crossing on this processor or microcode is outside the assumed range",
		},
		Sources: []string{
			"Weichbrodt et al., sgx-perf, Middleware 2018: batching and merging of ECALLs",
			"Weisse et al., HotCalls, ISCA 2017: calls without a crossing",
			cost.OCALL.Source, cost.Exitless.Source,
		},
	}
}

// judgeChattyECALLs estimates the crossings of ECALLs. Each enters the enclave and leaves it once, as an OCALL leaves and
// enters it. If the crossings are a worthwhile share of the CPU time, the calls are short.
func judgeChattyECALLs(w engine.Workload) *engine.Verdict {
	cores, busy := cpuOf(w)
	ecalls := w.By(ecallsSignal, "ecall")
	rate := total(ecalls)
	if !environmentOf(w).enclave() || !busy || rate <= 0 {
		return nil
	}
	if exits, counted := w.Value(exitsSignal); counted {
		rate = min(rate, exits) // each ends with an exit
	}
	bound := 1.0
	if user, measured := w.Value(userSignal); measured && !w.OCALLMeasured() {
		bound = user / cores // EENTER and EEXIT run in user mode; a measured cost may include more
	}
	low, high := shares(w, w.OCALL, rate, cores)
	if low, high = capped(low, high, bound); middle(low, high) < w.LeastFor(ecallCost) {
		return nil
	}
	top := topOf(ecalls)
	evidence, confidence := []string{ecallsSignal.With("ecall", top), ecallsSignal.Name, cpuSignal.Name, userSignal.Name}, analysis.Likely
	assumptions := []string{
		w.OCALL.Assumption(), cost.Exitless.Assumption(), w.Clock.Assumption(),
		"an ECALL enters and leaves once, as an OCALL leaves and enters; merging or switchless calls can avoid all crossings, and the work in the enclave remains",
	}
	if w.OCALLMeasured() {
		evidence, confidence = append(evidence, engine.EvidenceOCALL), analysis.Measured
	} else {
		assumptions = append(assumptions, "at most the time in user mode is saved")
	}
	length := ""
	if timed := w.By(ecallTimedSignal, "ecall")[top]; timed > 0 {
		length = fmt.Sprintf(", for %s us each", figure(1e6*w.By(ecallTimeSignal, "ecall")[top]/timed))
		evidence = append(evidence, ecallTimeSignal.With("ecall", top), ecallTimedSignal.With("ecall", top))
	}
	v := &engine.Verdict{
		Confidence: confidence,
		Cause: fmt.Sprintf("the enclave is called %s times/s, most often %s (%s/s%s), and entering and leaving it takes %s of the CPU time",
			figure(rate), top, figure(ecalls[top]), length, between(low, high)),
		Evidence: evidence,
		Advice: []string{
			"pass several requests with one ECALL, as an array",
			"merge ECALLs that always follow each other, and keep loops that call the enclave inside it",
			"mark short frequent calls transition_using_threads (switchless): a thread in the enclave then makes them, and keeps a CPU busy",
		},
	}
	v.Draws(engine.Exits, rate, 1, 1)
	least, most := difference(w, w.OCALL, cost.Exitless, rate)
	least, most = capped(least, most, bound*cores)
	v.Saves(w, least, most, assumptions...)
	return v
}

// topOf returns the name with the highest rate.
func topOf(rates map[string]float64) (top string) {
	for name := range rates {
		top = largest(rates, append([]string{name}, top)...)
	}
	return top
}
