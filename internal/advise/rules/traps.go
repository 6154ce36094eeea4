// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/analysis"
	"github.com/teescope/teescope/internal/analysis/cost"
	"github.com/teescope/teescope/internal/analysis/estimate"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func traps() advise.Rule {
	return advise.Rule{
		ID: "traps", Title: "instructions are trapped and emulated", Section: sectionMachine, Analyze: judged.AEXStorm,
		Needs:  [][]advise.Input{{advise.Stats, advise.Elapsed}},
		Signal: "synchronous signals a second after the start", Threshold: "the threshold of `aex-storm` for exceptions: 100/s",
		Source: "proposed; " + guide + ": 32 of a start are CPUID", Advice: "find CPUID, RDTSC or SYSCALL in the code; a newer processor",
		NotWhen: []string{"the application uses signals of its own, such as SIGSEGV of a Java virtual machine"},
		Judge: func(f *advise.Facts) *advise.Advice {
			if f.Stats.Processes == 0 {
				return nil
			}
			rate := trapRate(f)
			if rate < judged.TrapsPerSecond {
				return nil
			}
			// A trap is an asynchronous exit, and an entry and an exit for the emulation.
			clock := f.Machine.Clock()
			aexLow, aexHigh := cost.AEX.CPU(rate, clock)
			low, high := cost.OCALL.CPU(rate, clock)
			low, high = aexLow+low, aexHigh+high
			if used := f.Busy(); used > 0 {
				low, high = min(low, used), min(high, used)
			}
			a := &advise.Advice{
				Confidence: analysis.Likely,
				Saving:     estimate.Saves(low, high, cost.AEX.Assumption(), cost.OCALL.Assumption(), clock.Assumption(), "each trap is one asynchronous exit, and an entry and an exit to emulate the instruction"),
				Why:        fmt.Sprintf("%s synchronous signals a second: the enclave executes an instruction that SGX forbids there, and Gramine emulates it.", analysis.Figure(rate)),
				Seen:       []advise.Seen{seen("sync signals after the start", rate, "1/s", at(f.StatsFile, f.Stats.Line))},
				Do:         []string{"find CPUID and raw SYSCALL instructions in hot code: statically linked programs and their own OpenMP often have them"},
			}
			a.Severity = analysis.SeverityOf(nil, a.Saving, max(1, f.Busy()))
			return a
		},
	}
}
