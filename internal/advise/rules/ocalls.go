// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"github.com/teescope/teescope/internal/advise"
	judged "github.com/teescope/teescope/internal/analysis/rules"
)

func ocalls() advise.Rule {
	return advise.Rule{
		ID: "ocalls", Title: "enclave exits take much of the time", Section: sectionOCALLs, Analyze: judged.OCALLBound,
		Needs:     [][]advise.Input{{advise.Findings}, {advise.Stats, advise.Elapsed}},
		Signal:    "EEXITs a second after the start; a finding of `ocall-bound`, `small-io` or `exitless`",
		Threshold: "the threshold of `ocall-bound`: 10 % of the CPU time, or of one core if it is not known", Source: "proposed",
		Advice:  "batch calls, find the callers",
		NotWhen: []string{"the program ran so briefly that loading libraries made most of the exits"},
		Judge: func(f *advise.Facts) *advise.Advice {
			a := exitsFound(f)
			if a == nil && f.Has(advise.Stats) {
				if a = manyExits(f); a != nil {
					a.Do = lessExits()
				}
			}
			return a
		},
	}
}
