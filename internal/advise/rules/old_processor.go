// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/teescope/teescope/internal/advise"
	"github.com/teescope/teescope/internal/advise/machine"
	"github.com/teescope/teescope/internal/analysis"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func oldProcessor() advise.Rule {
	return advise.Rule{
		ID: "old-processor", Title: "the processor forbids RDTSC in enclaves", Section: sectionMachine, Analyze: judged.NeedlessSyscalls,
		Needs:  [][]advise.Input{{advise.HasSGX2, advise.Strace}, {advise.HasSGX2, advise.Stats, advise.Elapsed}},
		Signal: "no SGX2, with the signal of `time-calls` or `traps`", Threshold: "the thresholds of these rules",
		Source: "Intel SDM, volume 3D, Illegal instructions: RDTSC is legal in enclaves of processors with SGX2; " + guide + ": Icelake and later", Advice: "a newer processor",
		Judge: func(f *advise.Facts) *advise.Advice {
			if sgx2, known := f.Machine.Is(machine.SGX2); sgx2 || !known {
				return nil
			}
			var figures []advise.Seen
			if f.Calls != nil {
				if part, top := f.Calls.Share(clocks()...); part >= timeShare {
					figures = append(figures, seen("share of calls for the time", part, "ratio", at(f.CallsFile, top.Line)))
				}
			}
			if f.Has(advise.Stats) && f.Has(advise.Elapsed) && trapRate(f) >= judged.TrapsPerSecond {
				figures = append(figures, seen("sync signals after the start", trapRate(f), "1/s", at(f.StatsFile, f.Stats.Line)))
			}
			if len(figures) == 0 {
				return nil
			}
			a := configured(analysis.Info, analysis.Likely, "This processor has no SGX2, and such processors forbid RDTSC in enclaves. Each reading of the time leaves the enclave: Gramine makes an OCALL, or emulates the instruction of an application that executes it.")
			a.Seen = append(slices.Clone(figures), advise.Seen{What: "SGX2", Text: "no", Source: f.Machine.Source(machine.SGX2)})
			a.Do = []string{"move to a server processor from Ice Lake on", "until then read the time less often"}
			return a
		},
	}
}
